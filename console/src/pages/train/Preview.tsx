/** What will be made: the objects by kind and name, and their YAML. */
import { CheckCircleOutlined, CodeOutlined, DatabaseOutlined, DeploymentUnitOutlined, ExclamationCircleOutlined, KeyOutlined, LineChartOutlined } from '@ant-design/icons';
import { Button } from 'antd';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import { useText, type Words } from '../../app/i18n.tsx';
import { ErrorNotice, Loading, Section } from '../../parts/index.ts';
import type { KubeObject, Rendered } from './submit.ts';
import type { RenderState } from './useRender.ts';

const YamlPreview = lazy(() => import('./YamlPreview.tsx').then((module) => ({ default: module.YamlPreview })));

interface Props {
  state: RenderState;
  /** The Secret that is made beside the application. */
  secret?: string | undefined;
  waiting?: string;
}

export function Preview({ state, secret, waiting }: Props) {
  const { apps } = useText();
  const words = apps.train.preview;
  const { rendered, isBusy, error } = state;
  return (
    <Section title={words.title} extra={isBusy && rendered && <span className="pl-faint">{words.checking}</span>}>
      <div className="pl-train-preview" data-preview={rendered && !isBusy ? (rendered.faults.length > 0 ? 'faults' : 'ready') : 'waiting'} aria-live="polite">
        {error ? (
          <ErrorNotice error={error} />
        ) : rendered === undefined ? (
          isBusy ? <Loading rows={3} /> : <p className="pl-faint">{waiting ?? words.waiting}</p>
        ) : rendered.faults.length > 0 ? (
          <Faults rendered={rendered} />
        ) : (
          <Objects rendered={rendered} secret={secret} />
        )}
      </div>
    </Section>
  );
}

function Faults({ rendered }: { rendered: Rendered }) {
  const { apps } = useText();
  return (
    <>
      <p className="pl-tone-failed pl-row">
        <ExclamationCircleOutlined aria-hidden /> <strong>{apps.train.preview.faults}</strong>
      </p>
      <ul className="pl-train-faults" lang="en">
        {rendered.faults.map((fault) => (
          <li key={`${fault.path} ${fault.message}`}>
            <code>{fault.path.replace(/^spec\.values[.:]?\s?/, '')}</code> {fault.message}
          </li>
        ))}
      </ul>
    </>
  );
}

function Objects({ rendered, secret }: { rendered: Rendered; secret: string | undefined }) {
  const { apps } = useText();
  const words = apps.train.preview;
  const [hasYaml, setYaml] = useState(false);
  return (
    <>
      {rendered.changes !== undefined && !rendered.isNew && <Changes rendered={rendered} />}
      <ul className="pl-train-objects">
        <Entry icon={<CheckCircleOutlined />} kind="TrainingApp" name={rendered.app.metadata.name} what={words.app} />
        {secret !== undefined && <Entry icon={<KeyOutlined />} kind="Secret" name={secret} what={words.secret} />}
        {rendered.objects.map((object) => (
          <Entry key={`${object.kind}/${object.metadata.name}`} icon={iconOf(object.kind)} kind={object.kind} name={object.metadata.name} what={sayObject(object, words)} />
        ))}
      </ul>
      <Button size="small" type="text" icon={<CodeOutlined />} aria-expanded={hasYaml} onClick={() => setYaml(!hasYaml)}>
        {hasYaml ? words.hideYaml : words.showYaml}
      </Button>
      {hasYaml && (
        <Suspense fallback={<Loading rows={8} />}>
          <YamlPreview objects={[rendered.app, ...rendered.objects]} />
        </Suspense>
      )}
    </>
  );
}

function Changes({ rendered }: { rendered: Rendered }) {
  const { apps } = useText();
  const words = apps.train.preview;
  const changes = rendered.changes ?? [];
  if (changes.length === 0) return <p className="pl-faint">{words.same}</p>;
  const text = (value: unknown) => (value === null || value === undefined ? apps.revisions.unset : typeof value === 'string' ? value : JSON.stringify(value));
  return (
    <>
      <p>
        <strong>{words.differs(rendered.revision)}</strong>
      </p>
      <ul className="pl-train-changes">
        {changes.map((change) => (
          <li key={change.path}>
            <code>{change.path}</code> <span className="pl-faint">{text(change.old)}</span> → <strong>{text(change.new)}</strong>
          </li>
        ))}
      </ul>
      <p className="pl-soft">{words.stops}</p>
    </>
  );
}

function Entry({ icon, kind, name, what }: { icon: ReactNode; kind: string; name: string; what: string }) {
  return (
    <li data-kind={kind} data-name={name}>
      <span className="pl-train-icon" aria-hidden>
        {icon}
      </span>
      <span>
        <strong>{name}</strong>
        <span className="pl-faint">
          {kind}
          {what !== '' && ` · ${what}`}
        </span>
      </span>
    </li>
  );
}

function iconOf(kind: string): ReactNode {
  if (kind === 'PersistentVolumeClaim') return <DatabaseOutlined />;
  return kind === 'TensorBoard' ? <LineChartOutlined /> : <DeploymentUnitOutlined />;
}

interface ReplicaSpec {
  type?: string;
  replicas?: number;
}

/** What an object is for, in a few words. */
export function sayObject(object: KubeObject, words: Words['apps']['train']['preview']): string {
  const spec = object.spec ?? {};
  if (object.kind === 'PersistentVolumeClaim') return words.claim((spec.resources as { requests?: { storage?: string } } | undefined)?.requests?.storage ?? '');
  if (object.kind === 'TensorBoard') {
    const worker = /-tensorboard(\d+)$/.exec(object.metadata.name)?.[1];
    return worker === undefined ? words.board : words.boardOf(Number(worker));
  }
  const roles = (spec.replicaSpecs as ReplicaSpec[] | undefined) ?? [];
  return words.replicas(roles.map((role) => `${role.replicas ?? 1} × ${role.type ?? 'worker'}`).join(', '));
}
