/** The form of one object: panels and cards as the data of its kind says, and the tree of all fields. */
import { Select } from 'antd';
import { useId } from 'react';
import { useText } from '../app/i18n.tsx';
import { findingsAt, type Finding } from './checks.ts';
import { ControlOf } from './controls.tsx';
import { useForm, useValue } from './context.tsx';
import type { Path } from './document.ts';
import { Box, Disclosure, FindingNote } from './Field.tsx';
import { controlsOf, formOf, type Group, type GroupWord, type KindForm, type Panel } from './kinds.ts';
import { asObject } from './lists.tsx';
import { ReplicaCards } from './Replicas.tsx';
import type { Schema } from './schema.ts';
import { FieldTree } from './Tree.tsx';

export function ManifestForm({ values }: { values?: { schema: Schema } | undefined }) {
  const { create } = useText();
  const form = useForm();
  const kind = formOf(form.part.kind);
  const spec = form.schema?.schema.properties?.spec;
  if (!kind) return <p className="pf-empty">{create.noForm(form.part.kind)}</p>;
  const top = form.findings.filter((finding) => finding.path === 'kind' || finding.path === 'apiVersion' || finding.path === '');
  return (
    <div className="pf-form">
      {top.map((finding, index) => (
        <FindingNote key={index} finding={finding} />
      ))}
      {kind.panels.map((panel) => (
        <PanelOf key={panel.id} panel={panel} isOpen />
      ))}
      {kind.replicas && <ReplicaCards form={kind} />}
      {values && (
        <Disclosure name="values" title={create.groups.values} isOpen findings={findingsAt(form.findings, ['spec', 'values'])}>
          {() => <FieldTree path={['spec', 'values']} schema={values.schema} components={{}} />}
        </Disclosure>
      )}
      {kind.more.map((panel) => (
        <PanelOf key={panel.id} panel={panel} />
      ))}
      {spec && form.schema && (
        <Disclosure name="allFields" title={create.groups.allFields} findings={leftOver(form.findings, kind)}>
          {() => (
            <>
              <p className="pf-note">{create.groupHelp.allFields}</p>
              <FieldTree path={['spec']} schema={spec} components={form.schema!.components} />
            </>
          )}
        </Disclosure>
      )}
    </div>
  );
}

/** Findings that no other panel marks. */
function leftOver(findings: readonly Finding[], kind: KindForm): Finding[] {
  const shown = new Set<Finding>();
  for (const control of controlsOf(kind)) for (const finding of findingsAt(findings, control.path)) shown.add(finding);
  const replicas = kind.replicas;
  if (replicas) for (const finding of findingsAt(findings, replicas.isList || replicas.hasReplicas ? replicas.at : [...replicas.at, ...replicas.template])) shown.add(finding);
  return findings.filter((finding) => finding.path.startsWith('spec') && !shown.has(finding));
}

function pathsOf(group: Group): Path[] {
  return [...(group.toggle ? [group.toggle.path] : []), ...(group.choice ? [group.choice.path] : []), ...group.controls.map((control) => control.path)];
}

function useFindings(paths: readonly Path[]): Finding[] {
  const { findings } = useForm();
  return [...new Set(paths.flatMap((path) => findingsAt(findings, path)))];
}

function PanelOf({ panel, isOpen = false }: { panel: Panel; isOpen?: boolean }) {
  const { create } = useText();
  const findings = useFindings([...panel.controls.map((control) => control.path), ...panel.groups.flatMap(pathsOf)]);
  return (
    <Disclosure name={panel.id} title={create.groups[panel.id]} isOpen={isOpen} findings={findings}>
      {() => (
        <>
          <div className="pf-grid">
            {panel.controls.map((control) => (
              <ControlOf key={control.path.join('.')} control={control} />
            ))}
          </div>
          {panel.groups.map((group) => (
            <GroupOf key={group.id} group={group} />
          ))}
        </>
      )}
    </Disclosure>
  );
}

function GroupOf({ group }: { group: Group }) {
  const { create } = useText();
  const form = useForm();
  const findings = useFindings(pathsOf(group));
  const { toggle, choice } = group;
  const help = (create.groupHelp as Partial<Record<GroupWord, string>>)[group.id];
  const controls = group.controls.map((control) => <ControlOf key={control.path.join('.')} control={control} />);
  if (choice) return <ChoiceBox group={group} choice={choice} findings={findings} />;
  if (!toggle) {
    const isSet = group.controls.some((control) => form.part.get(control.path) !== undefined);
    return (
      <Box name={group.id} title={create.groups[group.id]} help={help} findings={findings} isOpen={isSet || group.controls.some((control) => control.isRequired)}>
        {controls}
      </Box>
    );
  }
  const value = form.part.get(toggle.path);
  const isOn = toggle.kind === 'enabled' ? value === true : value !== undefined && value !== null;
  // Switching a mode off keeps its other settings, so that switching it on again brings them back.
  const off = toggle.kind === 'enabled' && Object.keys(asObject(form.part.get(toggle.path.slice(0, -1)))).length > 1 ? false : undefined;
  return (
    <Box name={group.id} title={create.groups[group.id]} help={help} findings={findings} toggle={{ isOn, set: (on) => form.write([[toggle.path, on ? toggle.on : off]]) }}>
      {controls.length > 0 && controls}
    </Box>
  );
}

/** One of several objects: choosing another takes the first away. */
function ChoiceBox({ group, choice, findings }: { group: Group; choice: NonNullable<Group['choice']>; findings: readonly Finding[] }) {
  const { create } = useText();
  const form = useForm();
  const id = useId();
  const { value } = useValue(choice.path);
  const current = choice.options.find((option) => option.name in asObject(value));
  const choose = (name: string | undefined) => {
    const next = choice.options.find((option) => option.name === name);
    form.write([[choice.path, next ? { [next.name]: next.on } : undefined]]);
  };
  const select = (
    <Select
      size="small"
      aria-labelledby={id}
      className="pf-choice"
      value={current?.name ?? ''}
      options={[{ value: '', label: create.groups.none }, ...choice.options.map((option) => ({ value: option.name, label: create.groups[option.id] }))]}
      onChange={(name: string) => choose(name === '' ? undefined : name)}
    />
  );
  return (
    <div className="pf-box" data-group={group.id}>
      <div className="pf-box-head">
        <span id={id}>{create.groups[group.id]}</span>
        {select}
      </div>
      {findings.length > 0 && !current && <FindingNote finding={findings[0]!} />}
      {current && (
        <div className="pf-grid pf-box-body">
          {current.controls.map((control) => (
            <ControlOf key={control.path.join('.')} control={control} />
          ))}
        </div>
      )}
    </div>
  );
}
