/** A form for the values of any template, made from its schema: every value with its help text and its default. */
import { UndoOutlined } from '@ant-design/icons';
import { Button, Input, InputNumber, Select, Tooltip } from 'antd';
import { useId, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { rowsOf } from '../../forms/controls.tsx';
import type { Schema } from '../../forms/schema.ts';
import { Section } from '../../parts/index.ts';
import { getAt, groupsOf, isChanged, leavesOf, setAt, textOf, valueOf, type Leaf, type Tree } from './schema.ts';

interface Props {
  /** The template's name, by which its texts are found in the person's language. */
  template: string;
  schema: Schema;
  defaults: unknown;
  values: Tree;
  onChange: (values: Tree) => void;
  /** What the server says about single values, by path. */
  faults: Record<string, string>;
}

export function ValuesForm({ template, schema, defaults, values, onChange, faults }: Props) {
  return (
    <>
      {groupsOf(leavesOf(schema, defaults)).map((group) => (
        <Section key={group.name} title={group.name === '' ? undefined : <code>{group.name}</code>} hint={group.name === '' ? undefined : <TemplateText template={template} path={group.name} text={schema.properties?.[group.name]?.description ?? ''} />}>
          <div className="pl-values-group">
            {group.leaves.map((leaf) => (
              <ValueField key={leaf.path.join('.')} template={template} leaf={leaf} value={getAt(values, leaf.path)} set={(value) => onChange(setAt(values, leaf.path, value))} fault={faults[leaf.path.join('.')]} />
            ))}
          </div>
        </Section>
      ))}
    </>
  );
}

/** What a template says about a value, or about itself: in the person's language if there are words, else as it is written there. */
export function TemplateText({ template, path, text, initial = '' }: { template: string; path: string; text: string; initial?: string }) {
  const { apps, templates } = useText();
  const words = templates[template]?.[path];
  if (words === undefined) return <span lang="en">{text}</span>;
  return initial === '' ? words : `${words}${apps.form.defaultIs(initial)}`;
}

interface FieldProps {
  template: string;
  leaf: Leaf;
  value: unknown;
  set: (value: unknown) => void;
  fault: string | undefined;
}

function ValueField({ template, leaf, value, set, fault }: FieldProps) {
  const { apps } = useText();
  const id = useId();
  const name = leaf.path.slice(leaf.path.length > 1 ? 1 : 0).join('.');
  const changed = isChanged(value, leaf);
  return (
    <div className="pl-values-field" data-field={leaf.path.join('.')} data-changed={changed}>
      <label htmlFor={id}>{name}</label>
      <Control id={id} leaf={leaf} value={value} set={set} hasFault={fault !== undefined} />
      {!changed ? (
        <span />
      ) : (
        <Tooltip title={apps.form.reset(name)}>
          <Button type="text" size="small" icon={<UndoOutlined />} aria-label={apps.form.reset(name)} onClick={() => set(undefined)} />
        </Tooltip>
      )}
      {fault !== undefined && (
        <div className="pf-finding pf-error" role="alert" lang="en">
          {fault}
        </div>
      )}
      {leaf.help && (
        <p id={`${id}-help`} className="pf-note">
          <TemplateText template={template} path={leaf.path.join('.')} text={leaf.help} initial={leaf.shape === 'map' || leaf.shape === 'list' ? '' : textOf(leaf.initial)} />
        </p>
      )}
    </div>
  );
}

interface ControlProps {
  id: string;
  leaf: Leaf;
  value: unknown;
  set: (value: unknown) => void;
  hasFault: boolean;
}

function Control({ id, leaf, value, set, hasFault }: ControlProps) {
  const { apps } = useText();
  const shown = value === undefined ? leaf.initial : value;
  const ids = { id, status: hasFault ? ('error' as const) : ('' as const), 'aria-invalid': hasFault, ...(leaf.help ? { 'aria-describedby': `${id}-help` } : {}) };
  switch (leaf.shape) {
    case 'integer':
    case 'number':
      return <InputNumber {...ids} value={typeof shown === 'number' ? shown : null} min={leaf.schema.minimum} max={leaf.schema.maximum} precision={leaf.shape === 'integer' ? 0 : undefined} onChange={(next) => set(next ?? undefined)} />;
    case 'choice':
      return <Select {...ids} value={textOf(shown) || undefined} options={leaf.schema.enum!.map((option) => ({ value: option, label: option }))} onChange={(next: string) => set(next)} />;
    case 'switch':
      return (
        <Select
          {...ids}
          value={String(shown === true)}
          options={[
            { value: 'true', label: apps.form.yes },
            { value: 'false', label: apps.form.no },
          ]}
          onChange={(next: string) => set(next === 'true')}
        />
      );
    case 'list':
    case 'map':
      return <LinesInput ids={ids} leaf={leaf} shown={shown} set={set} />;
    default:
      return <Input {...ids} value={textOf(shown)} placeholder={textOf(leaf.initial) === '' ? apps.form.empty : apps.form.defaultOf(textOf(leaf.initial))} autoComplete="off" spellCheck={false} onChange={(event) => set(valueOf(event.target.value, leaf))} />;
  }
}

/** Several entries, one a line. What is typed stays as it is while it means the value that is shown. */
function LinesInput({ ids, leaf, shown, set }: { ids: object; leaf: Leaf; shown: unknown; set: (value: unknown) => void }) {
  const { apps } = useText();
  const [text, setText] = useState(textOf(shown));
  const isOwn = textOf(valueOf(text, leaf)) === textOf(shown);
  return (
    <Input.TextArea
      {...ids}
      className="pl-mono pf-lines"
      value={isOwn ? text : textOf(shown)}
      placeholder={leaf.shape === 'list' ? apps.form.list : 'NAME=VALUE'}
      rows={Math.max(rowsOf(isOwn ? text : textOf(shown)), 1)}
      spellCheck={false}
      onChange={(event) => {
        setText(event.target.value);
        set(valueOf(event.target.value, leaf));
      }}
    />
  );
}
