/** Where to start from: examples, templates, existing jobs, a file, the clipboard. */
import { DownOutlined } from '@ant-design/icons';
import { App, Button, Dropdown, Input, Modal } from 'antd';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { useRows } from '../../app/hooks.ts';
import { Ago, ErrorNotice, Loading, StatusTag } from '../../parts/index.ts';
import { MAX_TEXT } from '../../forms/document.ts';
import type { Schema } from '../../forms/schema.ts';
import { emptyText, templateText } from '../../forms/starts.ts';

export interface Example {
  id: string;
  kind: string;
  name: string;
  title: string;
  text: string;
  claim: string;
}

export interface Template {
  name: string;
  version: string;
  description: string;
  defaults: Record<string, unknown>;
  schema: Schema;
}

/** Something that is read once. */
export function useGet<T>(path: string | null): { data: T | undefined; error: ApiError | undefined } {
  const [state, setState] = useState<{ data: T | undefined; error: ApiError | undefined }>({ data: undefined, error: undefined });
  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    setState({ data: undefined, error: undefined });
    api
      .get<T>(path, { signal: abort.signal })
      .then((data) => setState({ data, error: undefined }))
      .catch((failure: unknown) => {
        if (!abort.signal.aborted) setState({ data: undefined, error: asApiError(failure) });
      });
    return () => abort.abort();
  }, [path]);
  return state;
}

/** The text of a file that somebody chose or dropped; throws a sentence for the person. */
export async function readFile(file: File, words: { notText: string; tooLarge: string }): Promise<string> {
  if (file.size > MAX_TEXT) throw new Error(words.tooLarge);
  const text = await file.text();
  if (text.includes('\u0000') || text.includes('\ufffd')) throw new Error(words.notText);
  return text;
}

/** An example with the claim that it needs, unless the project has it. */
export function exampleText(example: Example, claims: readonly string[]): string {
  const name = /^ {2}name: (.*)$/m.exec(example.claim)?.[1] ?? '';
  return example.claim === '' || claims.includes(name) ? example.text : `${example.claim.trimEnd()}\n---\n${example.text}`;
}

interface Props {
  kind: string;
  namespace: string;
  claims: readonly string[];
  onText: (text: string) => void;
  onJob: (namespace: string, kind: string, name: string) => void;
}

type Dialog = 'examples' | 'templates' | 'jobs' | null;

export function StartMenu({ kind, namespace, claims, onText, onJob }: Props) {
  const { create } = useText();
  const { message } = App.useApp();
  const [dialog, setDialog] = useState<Dialog>(null);
  const file = useRef<HTMLInputElement>(null);
  const take = (text: string) => {
    setDialog(null);
    onText(text);
  };
  const paste = async () => {
    try {
      take(await navigator.clipboard.readText());
    } catch {
      void message.info(create.start.noClipboard);
    }
  };
  const open = async (chosen: File | undefined) => {
    if (!chosen) return;
    try {
      take(await readFile(chosen, create.start));
    } catch (failure) {
      void message.error(failure instanceof Error ? failure.message : String(failure));
    }
  };
  const run: Record<string, () => void> = {
    empty: () => take(emptyText(kind)),
    examples: () => setDialog('examples'),
    templates: () => setDialog('templates'),
    jobs: () => setDialog('jobs'),
    file: () => file.current?.click(),
    paste: () => void paste(),
  };
  const items = [
    { key: 'empty', label: create.start.empty },
    { key: 'examples', label: create.start.example },
    { key: 'templates', label: create.start.template },
    { key: 'jobs', label: create.start.job },
    { key: 'file', label: create.start.file },
    { key: 'paste', label: create.start.paste },
  ];
  return (
    <>
      <Dropdown menu={{ items, onClick: ({ key }) => run[key]?.() }} trigger={['click']}>
        <Button>
          {create.start.label} <DownOutlined aria-hidden />
        </Button>
      </Dropdown>
      <input
        ref={file}
        type="file"
        accept=".yaml,.yml,.json,text/plain,application/yaml,application/json"
        hidden
        aria-label={create.start.file}
        onChange={(event) => {
          void open(event.target.files?.[0]);
          event.target.value = '';
        }}
      />
      <Examples isOpen={dialog === 'examples'} kind={kind} claims={claims} onText={take} onClose={() => setDialog(null)} />
      <Templates isOpen={dialog === 'templates'} onText={take} onClose={() => setDialog(null)} />
      <Jobs
        isOpen={dialog === 'jobs'}
        namespace={namespace}
        onClose={() => setDialog(null)}
        onJob={(...job) => {
          setDialog(null);
          onJob(...job);
        }}
      />
    </>
  );
}

function Choices({ isOpen, title, hint, error, onClose, children }: { isOpen: boolean; title: string; hint: string; error: ApiError | undefined; onClose: () => void; children: ReactNode }) {
  return (
    <Modal open={isOpen} title={title} footer={null} onCancel={onClose} width={680} destroyOnHidden>
      <div className="pl-stack">
        <p className="pl-soft">{hint}</p>
        {error ? <ErrorNotice error={error} /> : children}
      </div>
    </Modal>
  );
}

function Examples({ isOpen, kind, claims, onText, onClose }: { isOpen: boolean; kind: string; claims: readonly string[]; onText: (text: string) => void; onClose: () => void }) {
  const { create } = useText();
  const { data, error } = useGet<{ examples: Example[] }>(isOpen ? '/api/examples' : null);
  const examples = useMemo(() => [...(data?.examples ?? [])].sort((left, right) => Number(right.kind === kind) - Number(left.kind === kind)), [data, kind]);
  return (
    <Choices isOpen={isOpen} title={create.start.examples} hint={create.start.examplesHint} error={error} onClose={onClose}>
      {!data && <Loading rows={6} />}
      <ul className="pc-choices">
        {examples.map((example) => (
          <li key={example.id}>
            <button type="button" onClick={() => onText(exampleText(example, claims))}>
              <strong>{example.name}</strong> <span className="pl-mono pl-faint">{example.kind}</span>
              <span lang="en">{example.title}</span>
            </button>
          </li>
        ))}
      </ul>
    </Choices>
  );
}

function Templates({ isOpen, onText, onClose }: { isOpen: boolean; onText: (text: string) => void; onClose: () => void }) {
  const { create } = useText();
  const { data, error } = useGet<{ templates: Template[] }>(isOpen ? '/api/templates' : null);
  return (
    <Choices isOpen={isOpen} title={create.start.templates} hint={create.start.templatesHint} error={error} onClose={onClose}>
      {!data && <Loading rows={3} />}
      <ul className="pc-choices">
        {data?.templates.map((template) => (
          <li key={template.name}>
            <button type="button" onClick={() => onText(templateText(template.name, template.version, template.defaults))}>
              <strong>{template.name}</strong> <span className="pl-faint">{template.version}</span>
              <span lang="en">{template.description}</span>
            </button>
          </li>
        ))}
      </ul>
    </Choices>
  );
}

const MOST = 30;

function Jobs({ isOpen, namespace, onJob, onClose }: { isOpen: boolean; namespace: string; onJob: (namespace: string, kind: string, name: string) => void; onClose: () => void }) {
  const { create } = useText();
  const rows = useRows(isOpen ? namespace : null);
  const [words, setWords] = useState('');
  const jobs = (rows.data ?? []).filter((row) => row.name.includes(words.trim())).sort((left, right) => String(right.created).localeCompare(String(left.created)));
  return (
    <Choices isOpen={isOpen} title={create.start.jobs} hint={create.start.jobsHint} error={rows.error} onClose={onClose}>
      <Input aria-label={create.start.findJob} placeholder={create.start.findJob} value={words} allowClear onChange={(event) => setWords(event.target.value)} />
      {!rows.data && <Loading rows={4} />}
      <ul className="pc-choices">
        {jobs.slice(0, MOST).map((row) => (
          <li key={row.uid}>
            <button type="button" onClick={() => onJob(row.namespace, row.kind, row.name)}>
              <strong>{row.name}</strong> <span className="pl-mono pl-faint">{row.kind}</span>
              <span className="pl-row">
                <StatusTag phase={row.phase} /> <Ago time={row.created} />
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Choices>
  );
}
