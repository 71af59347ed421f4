/** The uploads of the page: one after the other, with progress; each can be paused, resumed and cancelled. */
import { Button } from 'antd';
import { useCallback, useEffect, useRef, useState } from 'react';
import { asApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { blockNavigation } from '../../app/router.tsx';
import { bytesText, Section } from '../../parts/index.ts';
import { join, readableName, type ClaimRef } from '../../volumes/client.ts';
import { identity, transport, upload, type Fields, type UploadItem, type UploadState } from '../../volumes/upload.ts';

interface Job extends UploadItem {
  file: File;
  isReplacing: boolean;
}

export interface Uploads {
  items: readonly Job[];
  add(files: readonly File[], folder: string): void;
  change(id: number, patch: Partial<Job>): void;
  cancel(id: number): void;
  clear(): void;
}

function fieldsOf(job: Job): Fields {
  return { path: job.path, size: job.file.size, id: identity(job.file), replace: job.isReplacing };
}

export function useUploads(claim: ClaimRef, onDone: () => void): Uploads {
  const question = useText().volumes.leave;
  const jobs = useRef(new Map<number, Job>());
  const [items, setItems] = useState<readonly Job[]>([]);
  const isWorking = useRef(false);
  const nextId = useRef(1);
  const change = useCallback((id: number, patch: Partial<Job>) => {
    const job = jobs.current.get(id);
    if (job === undefined) return;
    jobs.current.set(id, { ...job, ...patch });
    setItems([...jobs.current.values()]);
    if (patch.state === 'waiting') void work();
  }, []);

  async function work(): Promise<void> {
    if (isWorking.current) return;
    isWorking.current = true;
    for (let job = next(); job !== undefined; job = next()) await send(job);
    isWorking.current = false;
  }

  function next(): Job | undefined {
    return [...jobs.current.values()].find((job) => job.state === 'waiting');
  }

  async function send(job: Job): Promise<void> {
    change(job.id, { state: 'running', error: undefined });
    const isStopped = () => jobs.current.get(job.id)?.state !== 'running';
    try {
      const end = await upload(job.file, fieldsOf(job), transport(claim), { isStopped, onProgress: (sent) => change(job.id, { sent }) });
      if (end === 'done') {
        change(job.id, { state: 'done' });
        onDone();
      }
    } catch (failure) {
      const error = asApiError(failure);
      change(job.id, error.code === 409 ? { state: 'exists', error } : { state: 'failed', error });
    }
  }

  const add = (files: readonly File[], folder: string) => {
    for (const file of files) {
      const id = nextId.current++;
      jobs.current.set(id, { id, file, path: join(folder, file.name), size: file.size, sent: 0, state: 'waiting', isReplacing: false });
    }
    setItems([...jobs.current.values()]);
    void work();
  };
  const cancel = (id: number) => {
    const job = jobs.current.get(id);
    jobs.current.delete(id);
    setItems([...jobs.current.values()]);
    if (job !== undefined && job.state !== 'done') void transport(claim).cancel(fieldsOf(job)).catch(() => undefined);
  };
  const clear = () => {
    for (const job of jobs.current.values()) if (job.state === 'done') jobs.current.delete(job.id);
    setItems([...jobs.current.values()]);
  };
  useEffect(() => {
    if (!items.some(({ state }) => state === 'running' || state === 'waiting')) return undefined;
    return blockNavigation(() => window.confirm(question));
  }, [items, question]);
  return { items, add, change, cancel, clear };
}

const RESUMABLE: readonly UploadState[] = ['paused', 'failed'];

export function UploadList({ uploads }: { uploads: Uploads }) {
  const { volumes } = useText();
  const { items } = uploads;
  if (items.length === 0) return null;
  const isOpen = items.some(({ state }) => state !== 'done');
  return (
    <Section title={volumes.uploads} hint={isOpen ? volumes.keepOpen : undefined} extra={<Button size="small" onClick={uploads.clear}>{volumes.clear}</Button>}>
      <ul className="pl-uploads">
        {items.map((item) => (
          <li key={item.id} data-upload-state={item.state}>
            <span className="pl-file-name">{readableName(item.path)}</span>
            <progress max={item.size || 1} value={item.size === 0 ? Number(item.state === 'done') : item.sent} aria-label={item.path} />
            <span className="pl-soft pl-figures">{volumes.states[item.state]} · {bytesText(item.sent)} / {bytesText(item.size)}</span>
            <span className="pl-row">
              {item.state === 'running' && <Button size="small" onClick={() => uploads.change(item.id, { state: 'paused' })}>{volumes.pause}</Button>}
              {RESUMABLE.includes(item.state) && <Button size="small" onClick={() => uploads.change(item.id, { state: 'waiting' })}>{volumes.resume}</Button>}
              {item.state === 'exists' && <Button size="small" onClick={() => uploads.change(item.id, { state: 'waiting', isReplacing: true })}>{volumes.overwrite}</Button>}
              {item.state !== 'done' && <Button size="small" type="text" onClick={() => uploads.cancel(item.id)}>{volumes.cancel}</Button>}
            </span>
            {item.error !== undefined && <span className="pl-upload-error">{asApiError(item.error).message}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}
