/** Create jobs and what belongs to them: a form and its YAML, which are one thing. */
import { DownOutlined } from '@ant-design/icons';
import { Alert, App, Button, Dropdown, Select, Space } from 'antd';
import { useCallback, useEffect, useMemo, useRef, useState, type DragEvent } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { useObjects } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { useAnnounce } from '../../app/keys.tsx';
import { navigateFromHere, pathOf, useQuery, useRoute } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { ClaimDialog } from '../../forms/ClaimDialog.tsx';
import { applyFix, type Finding } from '../../forms/checks.ts';
import { FormProvider, type FormState } from '../../forms/context.tsx';
import { writeAll, type Part } from '../../forms/document.ts';
import { FORMS, formOf } from '../../forms/kinds.ts';
import { ManifestForm } from '../../forms/ManifestForm.tsx';
import type { KindSchema } from '../../forms/schema.ts';
import { copyText, emptyText, nextName, templateText } from '../../forms/starts.ts';
import { Confirm, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { manifestOf, type JobRecord } from '../history/rows.ts';
import { storedText, storeText, useChecks, useParsed } from './draft.ts';
import { Editor, type EditorHandle } from './Editor.tsx';
import { Footer } from './Footer.tsx';
import { Split, type Side } from './Split.tsx';
import { exampleText, readFile, StartMenu, useGet, type Example, type Template } from './Starts.tsx';
import { createAll, findingsOf, pageOf, pausedText, Refusal } from './submit.ts';
import './create.css';

const FIRST = 'PyTorchTrainingJob';

/** The kind that a URL means: by its name, or by that of the create menu, in any case. */
export function kindOf(name: string | undefined): string {
  const wanted = (name ?? '').toLowerCase();
  return FORMS.find((form) => form.kind.toLowerCase() === wanted || form.title.toLowerCase() === wanted)?.kind ?? formOf(name ?? '')?.kind ?? FIRST;
}

export default function CreatePage() {
  const { params } = useRoute();
  const [query] = useQuery();
  const url = `${params.kind ?? ''}?${query.toString()}`;
  return <Start key={url} url={url} kind={kindOf(params.kind)} query={query} />;
}

interface Source {
  text: string;
  isRestored: boolean;
}

/** Finds the text to start with: the unsaved one, a copy of a job, an example, a template, or an empty form. */
function Start({ url, kind, query }: { url: string; kind: string; query: URLSearchParams }) {
  const { create } = useText();
  const [namespace] = useNamespace();
  const [source, setSource] = useState<Source | null>(null);
  const [error, setError] = useState<ApiError>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const stored = storedText(url);
    setError(undefined);
    if (stored !== null && round === 0) {
      setSource({ text: stored, isRestored: true });
      return undefined;
    }
    startText(kind, query)
      .then((text) => isCurrent && setSource({ text, isRestored: false }))
      .catch((failure: unknown) => isCurrent && setError(asApiError(failure)));
    return () => {
      isCurrent = false;
    };
    // The URL says it all; a page of another URL is another component.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [round]);
  if (error) {
    return (
      <Page name="create" title={create.titleOf(kind)}>
        <ErrorNotice error={error} onRetry={() => setRound(round + 1)} extra={<Button size="small" onClick={() => setSource({ text: emptyText(kind), isRestored: false })}>{create.start.empty}</Button>} />
      </Page>
    );
  }
  if (source === null) {
    return (
      <Page name="create" title={create.titleOf(kind)}>
        <Loading rows={12} />
      </Page>
    );
  }
  const discard = () => {
    storeText(url, null);
    setSource(null);
    setRound(round + 1);
  };
  return <Workspace key={round} url={url} urlKind={kind} source={source} namespace={namespace || 'default'} onDiscard={discard} />;
}

async function startText(kind: string, query: URLSearchParams): Promise<string> {
  const [from, record, example, template] = [query.get('from'), query.get('record'), query.get('example'), query.get('template')];
  if (from) {
    const [namespace = '', fromKind = '', name = ''] = from.split('/');
    return jobText(namespace, fromKind, name);
  }
  if (record) {
    const [namespace = '', name = ''] = record.split('/');
    const past = await api.get<JobRecord>(`/k8s/apis/paceline.dev/v1beta1${pathOf('namespaces', namespace, 'jobrecords', name)}`);
    return copyText(manifestOf(past), nextName(past.spec.job.name));
  }
  if (example) {
    const { examples } = await api.get<{ examples: Example[] }>('/api/examples');
    const found = examples.find((candidate) => candidate.id === example);
    if (found) return exampleText(found, []);
  }
  if (template) {
    const { templates } = await api.get<{ templates: Template[] }>('/api/templates');
    const found = templates.find((candidate) => candidate.name === template);
    if (found) return templateText(found.name, found.version, found.defaults);
  }
  return emptyText(kind);
}

async function jobText(namespace: string, kind: string, name: string): Promise<string> {
  const form = formOf(kind) ?? formOf(FIRST)!;
  const root = form.apiVersion.includes('/') ? `/k8s/apis/${form.apiVersion}` : `/k8s/api/${form.apiVersion}`;
  const job = await api.get<object>(`${root}/namespaces/${encodeURIComponent(namespace)}/${form.plural}/${encodeURIComponent(name)}`);
  return copyText(job, nextName(name));
}

interface WorkspaceProps {
  url: string;
  urlKind: string;
  source: Source;
  namespace: string;
  onDiscard: () => void;
}

function Workspace({ url, urlKind, source, namespace, onDiscard }: WorkspaceProps) {
  const { create } = useText();
  const { message } = App.useApp();
  const announce = useAnnounce();
  const [text, setText] = useState(source.text);
  const [isTyping, setTyping] = useState(false);
  const [isRestored, setRestored] = useState(source.isRestored);
  const [original, setOriginal] = useState(source.isRestored ? '' : source.text);
  const [chosen, setChosen] = useState<number | null>(null);
  const [side, setSide] = useState<Side>('form');
  const [round, setRound] = useState(0);
  const [busy, setBusy] = useState<'now' | 'paused' | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [replacement, setReplacement] = useState<(() => void) | null>(null);
  const [isDragged, setDragged] = useState(false);
  const [claim, setClaim] = useState<{ name: string; use: (name: string) => void } | null>(null);
  const editor = useRef<EditorHandle>(null);

  const { parsed, isReadable } = useParsed(text, isTyping);
  const checks = useChecks(text, namespace, round);
  const claims = useObjects<{ metadata: { name: string } }>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims`);
  const claimNames = useMemo(() => (claims.data ?? []).map((object) => object.metadata.name), [claims.data]);

  const index = Math.min(chosen ?? mainPart(parsed.parts), Math.max(parsed.parts.length - 1, 0));
  const part = parsed.parts[index];
  const kind = part?.kind ?? '';
  const title = create.titleOf(kind === '' ? urlKind : kind);
  const isDirty = text !== original;

  useEffect(() => storeText(url, isDirty ? text : null), [url, text, isDirty]);
  // A claim that was made meanwhile may be the one that the text names.
  useEffect(() => setRound((before) => before + 1), [claimNames.length]);

  const change = useCallback((next: string, typed: boolean) => {
    setText(next);
    setTyping(typed);
    setRefusal(null);
  }, []);
  const load = useCallback(
    (next: () => void) => {
      if (isDirty && text.trim() !== '') setReplacement(() => next);
      else next();
    },
    [isDirty, text],
  );
  const begin = useCallback(
    (next: string) => {
      change(next, false);
      setOriginal(next);
      setChosen(null);
      setRestored(false);
    },
    [change],
  );
  const fromJob = async (...job: [string, string, string]) => {
    try {
      begin(await jobText(...job));
    } catch (failure) {
      void message.error(asApiError(failure).message);
    }
  };

  const refused = useMemo(() => (refusal ? findingsOf(refusal, text) : []), [refusal, text]);
  const findings = useMemo(() => [...checks.checked.findings, ...refused.filter((finding) => !checks.checked.findings.some(({ path }) => path === finding.path))], [checks.checked.findings, refused]);
  const fix = (finding: Finding) => {
    // The places of a fix are those of the text that was checked.
    if (finding.fix && checks.text === text) change(applyFix(text, finding.fix), false);
  };

  const submit = async (isPaused: boolean) => {
    if (busy !== null || !isReadable) return;
    setBusy(isPaused ? 'paused' : 'now');
    setRefusal(null);
    const follow = navigateFromHere();
    try {
      const created = await createAll(isPaused ? pausedText(text) : text, namespace);
      storeText(url, null);
      setOriginal(text);
      const main = created[Math.min(index, created.length - 1)]!;
      void message.success(create.created(main.kind, main.name));
      announce(create.created(main.kind, main.name));
      follow(pageOf(main));
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure;
      setRefusal(failure);
      announce(create.refused);
    } finally {
      setBusy(null);
    }
  };

  const schema = useSchema(kind);
  const templates = useGet<{ templates: Template[] }>(kind === 'TrainingApp' ? '/api/templates' : null);
  const template = templates.data?.templates.find(({ name }) => name === part?.get(['spec', 'template', 'name']));
  const form: FormState | undefined = part && {
    part,
    findings: findings.filter((finding) => finding.object === index),
    namespace,
    schema,
    write: (changes) => change(writeAll(text, index, changes), false),
    fix,
    newClaim: (name, use) => setClaim({ name, use }),
  };

  const drop = async (event: DragEvent) => {
    setDragged(false);
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    try {
      const dropped = await readFile(file, create.start);
      load(() => begin(dropped));
    } catch (failure) {
      void message.error(failure instanceof Error ? failure.message : String(failure));
    }
  };

  return (
    <Page
      name="create"
      title={title}
      isFull
      revision={String(round)}
      heading={
        <Heading
          title={title}
          kind={kind || urlKind}
          namespace={namespace}
          onKind={(next) => load(() => begin(emptyText(next)))}
        />
      }
      actions={
        <>
          <StartMenu kind={kind || urlKind} namespace={namespace} claims={claimNames} onText={(next) => load(() => begin(next))} onJob={(...job) => load(() => void fromJob(...job))} />
          <Space.Compact>
            <Button type="primary" loading={busy === 'now'} disabled={!isReadable || parsed.parts.length === 0 || busy !== null} onClick={() => void submit(false)}>
              {create.create}
            </Button>
            <Dropdown trigger={['click']} disabled={!isReadable || busy !== null} menu={{ items: [{ key: 'paused', label: create.createPaused }], onClick: () => void submit(true) }}>
              <Button type="primary" loading={busy === 'paused'} aria-label={create.createMore} icon={<DownOutlined />} />
            </Dropdown>
          </Space.Compact>
        </>
      }
    >
      <div
        className="pc-root"
        onDragOver={(event) => {
          event.preventDefault();
          setDragged(true);
        }}
        onDragLeave={(event) => !event.currentTarget.contains(event.relatedTarget as Node | null) && setDragged(false)}
        onDrop={(event) => void drop(event)}
      >
        {isRestored && (
          <Alert
            type="info"
            showIcon
            title={create.start.restored}
            closable={{ onClose: () => setRestored(false) }}
            action={
              <Button size="small" onClick={onDiscard}>
                {create.start.discard}
              </Button>
            }
          />
        )}
        {refusal && <RefusalNotice refusal={refusal} part={parsed.parts[refusal.object]} onName={(name) => change(writeAll(text, refusal.object, [[['metadata', 'name'], name]]), false)} />}
        <Split
          side={side}
          onSide={setSide}
          form={
            <div className="pc-form">
              {!isReadable && <Alert type="warning" showIcon title={create.unreadable} />}
              {parsed.parts.length > 1 && (
                <Select
                  aria-label={create.objects}
                  value={index}
                  options={parsed.parts.map((entry, number) => ({ value: number, label: create.object(number + 1, entry.kind, nameOf(entry)) }))}
                  onChange={setChosen}
                />
              )}
              <fieldset className={isReadable ? '' : 'pc-frozen'} disabled={!isReadable} aria-label={create.form}>
                {form ? (
                  <FormProvider value={form}>
                    <ManifestForm key={`${index} ${kind}`} values={template} />
                  </FormProvider>
                ) : (
                  isReadable && <p className="pf-empty">{create.noForm('')}</p>
                )}
              </fieldset>
            </div>
          }
          editor={<Editor handle={editor} text={text} findings={findings} onChange={(next) => next !== text && change(next, true)} onFix={fix} onSubmit={() => void submit(false)} />}
        />
        <Footer
          state={checks}
          findings={findings}
          onFix={fix}
          onShow={(finding) => {
            setSide('yaml');
            setTimeout(() => editor.current?.show(finding));
          }}
          onClaim={(finding) => setClaim({ name: missingName(finding, parsed.parts), use: () => undefined })}
        />
        {isDragged && <div className="pc-drop">{create.start.dropHere}</div>}
      </div>
      <Confirm
        open={replacement !== null}
        title={create.start.replace}
        action={create.start.replaceAction}
        isDangerous
        onCancel={() => setReplacement(null)}
        onConfirm={() => {
          replacement?.();
          setReplacement(null);
        }}
      >
        {create.start.replaceHint}
      </Confirm>
      <ClaimDialog
        name={claim?.name ?? null}
        namespace={namespace}
        onCancel={() => setClaim(null)}
        onDone={(name) => {
          claim?.use(name);
          setClaim(null);
          setRound((before) => before + 1);
        }}
      />
    </Page>
  );
}

/** What the cluster said; a name that is taken can be changed at once. */
function RefusalNotice({ refusal, part, onName }: { refusal: Refusal; part: Part | undefined; onName: (name: string) => void }) {
  const { create } = useText();
  const created = refusal.created.length > 0 && create.createdSome(refusal.created.map((target) => `${target.kind} ${target.name}`).join(', '));
  if (part && refusal.error.reason === 'AlreadyExists') {
    const next = nextName(nameOf(part));
    return (
      <Alert
        type="error"
        showIcon
        role="alert"
        title={create.taken(part.kind, nameOf(part))}
        description={created || undefined}
        action={
          <Button size="small" onClick={() => onName(next)}>
            {create.useName(next)}
          </Button>
        }
      />
    );
  }
  return <ErrorNotice error={refusal.error} title={created ? create.refusedSome : create.refused} extra={created} />;
}

/** The object that the form shows first: a job rather than its claim. */
function mainPart(parts: readonly Part[]): number {
  const job = parts.findIndex((part) => formOf(part.kind)?.category === 'job');
  const known = job === -1 ? parts.findIndex((part) => formOf(part.kind) !== undefined) : job;
  return Math.max(known, 0);
}

function nameOf(part: Part): string {
  const name = part.get(['metadata', 'name']);
  return typeof name === 'string' ? name : '';
}

/** The name of the claim that a fault misses. */
function missingName(finding: Finding, parts: readonly Part[]): string {
  const quoted = /^"([^"]+)"/.exec(finding.message)?.[1] ?? '';
  return quoted || nameOf(parts[0]!);
}

function useSchema(kind: string): KindSchema | undefined {
  const { data } = useGet<KindSchema>(formOf(kind) ? `/api/schemas/${encodeURIComponent(kind)}` : null);
  return data;
}

function Heading({ title, kind, namespace, onKind }: { title: string; kind: string; namespace: string; onKind: (kind: string) => void }) {
  const { create } = useText();
  return (
    <div className="pc-heading">
      <h1 className="pl-hidden">{title}</h1>
      <span className="pc-new" aria-hidden>
        {create.newObject}
      </span>
      <Select
        aria-label={create.kind}
        value={formOf(kind) ? kind : null}
        variant="filled"
        popupMatchSelectWidth={false}
        options={FORMS.map((form) => ({ value: form.kind, label: form.kind }))}
        onChange={(next: string | null) => next && onKind(next)}
      />
      <span className="pl-faint">{create.inProject(namespace)}</span>
    </div>
  );
}
