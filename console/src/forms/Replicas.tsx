/** One card per replica type: how many, which image and command, with which resources and volumes. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons';
import { Button, Select } from 'antd';
import { useText } from '../app/i18n.tsx';
import { findingsAt } from './checks.ts';
import { asText, ControlOf, TextControl, WordsControl, useFieldWords } from './controls.tsx';
import { Resources, SharedMemory, Volumes } from './container.tsx';
import { useForm, useValue } from './context.tsx';
import { valueAt, type Path } from './document.ts';
import { Box, Disclosure, Field } from './Field.tsx';
import type { KindForm, Replicas } from './kinds.ts';
import { asList, asObject, EnvControl, LateInput } from './lists.tsx';
import type { Pod } from './pods.ts';
import { newReplica } from './starts.ts';

export function ReplicaCards({ form: kind }: { form: KindForm }) {
  const { create } = useText();
  const form = useForm();
  const replicas = kind.replicas!;
  if (!replicas.isList) return <ReplicaCard at={replicas.at} replicas={replicas} canGo={false} />;
  const entries = asList(form.part.get(replicas.at));
  const used = entries.map((entry) => asText(asObject(entry).type));
  const free = replicas.types.filter((type) => !used.includes(type));
  const image = asText(valueAt(entries[0], [...replicas.template, 'spec', 'containers', 0, 'image']));
  const add = (type: string) => form.write([[[...replicas.at, entries.length], newReplica(kind, type, image)]]);
  return (
    <>
      {entries.map((_, index) => (
        <ReplicaCard key={index} at={[...replicas.at, index]} replicas={replicas} canGo={entries.length > 1} />
      ))}
      {(replicas.types.length === 0 || free.length > 0) && (
        <Button type="dashed" block icon={<PlusOutlined />} onClick={() => add(replicas.types.length > 0 ? free[0]! : freeType(used))}>
          {create.card.add}
        </Button>
      )}
    </>
  );
}

function freeType(used: readonly string[]): string {
  for (const type of ['worker', 'ps', 'master', 'node']) if (!used.includes(type)) return type;
  return `worker-${used.length + 1}`;
}

function ReplicaCard({ at, replicas, canGo }: { at: Path; replicas: Replicas; canGo: boolean }) {
  const { create } = useText();
  const form = useForm();
  const { value } = useValue(at);
  const type = replicas.isList ? asText(asObject(value).type) : replicas.types[0]!;
  const count = asObject(value).replicas;
  const title = (
    <>
      <span className="pl-mono pf-type">{type === '' ? create.card.untitled : type}</span>
      {replicas.hasReplicas && <span className="pl-faint">{create.card.replicas(typeof count === 'number' ? count : 1)}</span>}
    </>
  );
  const remove = canGo && <Button type="text" size="small" icon={<DeleteOutlined />} aria-label={create.card.remove(type)} onClick={() => form.write([[at, undefined]])} />;
  return (
    <Disclosure name={`replica-${type}`} title={title} isOpen findings={replicaFindings(form, at, replicas)} extra={remove}>
      {() => <ReplicaBody at={at} replicas={replicas} type={type} />}
    </Disclosure>
  );
}

function replicaFindings(form: ReturnType<typeof useForm>, at: Path, replicas: Replicas) {
  return findingsAt(form.findings, replicas.isList || replicas.hasReplicas ? at : [...at, ...replicas.template]);
}

function ReplicaBody({ at, replicas, type }: { at: Path; replicas: Replicas; type: string }) {
  const { create } = useText();
  const { part } = useForm();
  const template: Path = [...at, ...replicas.template];
  const spec: Path = [...template, 'spec'];
  const containers = asList(part.get([...spec, 'containers'])).map((container) => asText(asObject(container).name));
  const named = containers.indexOf(replicas.container === 'type' ? type : replicas.container);
  const container = Math.max(named, 0);
  const pod: Pod = { at: spec, container, value: part.get(spec) };
  const path: Path = [...spec, 'containers', container];
  const alias = part.aliasAt(template);
  const anchor = part.anchorAt(template);
  return (
    <>
      {alias !== '' && <p className="pf-note">{create.aliased(alias)}</p>}
      {anchor !== '' && <p className="pf-note">{create.shared(anchor)}</p>}
      <div className="pf-grid">
        {replicas.isList && <TypeControl path={[...at, 'type']} types={replicas.types} />}
        {replicas.hasReplicas && <ControlOf control={{ as: 'number', path: [...at, 'replicas'], label: 'replicas', min: 1, example: '1' }} />}
        <Restart at={at} replicas={replicas} />
        {replicas.hasWeight && part.get(['spec', 'elastic', 'enabled']) === true && (
          <ControlOf control={{ as: 'number', path: [...at, 'scalingWeight'], label: 'scalingWeight', min: 0 }} />
        )}
        <TextControl path={[...path, 'image']} label="image" isRequired isWide example="pytorch/pytorch:2.13.0" />
        {replicas.hasCommand && (
          <>
            <WordsControl path={[...path, 'command']} label="command" example="python" />
            <WordsControl path={[...path, 'args']} label="args" example={'train.py "--backend=nccl"'} />
          </>
        )}
        <Resources path={[...path, 'resources']} />
        <SharedMemory pod={pod} />
        <TextControl path={[...path, 'workingDir']} label="workingDir" isWide example="/t9k/mnt" />
        <Volumes pod={pod} />
        <EnvControl path={[...path, 'env']} />
      </div>
      <Box name="container" title={create.groups.more}>
        <TextControl path={[...path, 'name']} label="containerName" isRequired />
        <ControlOf control={{ as: 'select', path: [...path, 'imagePullPolicy'], label: 'imagePullPolicy', options: ['Always', 'IfNotPresent', 'Never'] }} />
      </Box>
    </>
  );
}

function TypeControl({ path, types }: { path: Path; types: readonly string[] }) {
  const { value, set, findings } = useValue(path);
  const words = useFieldWords('type');
  return (
    <Field {...words} path={path} findings={findings} isRequired isGroup={types.length === 0}>
      {(ids) =>
        types.length > 0 ? (
          <Select {...ids} value={asText(value)} options={types.map((type) => ({ value: type, label: type }))} onChange={set} />
        ) : (
          <LateInput label={words.label} value={asText(value)} set={set} isMono />
        )
      }
    </Field>
  );
}

const POLICIES = ['Always', 'OnFailure', 'Never'];

/** T9k writes the policy as text in some kinds, and as an object with a limit in others; both are kept as written. */
function Restart({ at, replicas }: { at: Path; replicas: Replicas }) {
  const path: Path = [...at, 'restartPolicy'];
  const { value } = useValue(path);
  if (replicas.restart === 'none') return null;
  const isObject = value === undefined || value === null ? replicas.restart === 'object' : typeof value === 'object';
  const options = replicas.restart === 'text' ? [...POLICIES, 'ExitCode'] : POLICIES;
  if (!isObject) return <ControlOf control={{ as: 'select', path, label: 'restartPolicy', options }} />;
  return (
    <>
      <ControlOf control={{ as: 'select', path: [...path, 'policy'], label: 'restartPolicy', options }} />
      <ControlOf control={{ as: 'number', path: [...path, 'limit'], label: 'restartLimit', min: 0, example: '0' }} />
    </>
  );
}
