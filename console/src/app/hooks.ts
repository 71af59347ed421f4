/** Live data for components. Components that ask for the same thing share one subscription, which lingers for a moment. */
import { useCallback, useEffect, useSyncExternalStore } from 'react';
import { api, type ApiError } from './api.ts';
import { Live, LiveStore, NOTHING, type ObjectsRequest, type RowsRequest, type Snapshot, type ViewRequest } from './live.ts';
import type { Row } from './rows.ts';

export const live = new Live({
  connect: () => new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`),
  // A 401 from there ends the session in the page.
  onRefused: () => void api.get('/api/me').catch(() => undefined),
});

export interface LiveData<T> {
  /** `undefined` until the first answer; the old data while a new answer is on its way. */
  data: T | undefined;
  error: ApiError | undefined;
  revision: string | undefined;
  /** The console or the cluster behind it is not heard: what is shown is as of `since`. */
  stale: boolean;
  /** When it was last heard, in milliseconds. */
  since: number;
}

const LINGER = 10_000;

interface Shared {
  store: LiveStore<unknown>;
  users: number;
  stop: () => void;
  ending: ReturnType<typeof setTimeout> | undefined;
}

const shared = new Map<string, Shared>();

function obtain(key: string): Shared {
  const present = shared.get(key);
  if (present) return present;
  const store = new LiveStore<unknown>(JSON.parse(key) as RowsRequest | ObjectsRequest | ViewRequest);
  const entry: Shared = { store, users: 0, stop: () => {}, ending: undefined };
  shared.set(key, entry);
  return entry;
}

function enter(key: string): () => void {
  const entry = obtain(key);
  clearTimeout(entry.ending);
  if (entry.users === 0 && entry.ending === undefined) entry.stop = live.subscribe(entry.store);
  entry.ending = undefined;
  entry.users += 1;
  return () => {
    entry.users -= 1;
    if (entry.users > 0) return;
    entry.ending = setTimeout(() => {
      entry.stop();
      shared.delete(key);
    }, LINGER);
  };
}

function useSubscription<T>(request: RowsRequest | ObjectsRequest | ViewRequest | null): LiveData<T> {
  const key = request === null ? null : JSON.stringify(request);
  const subscribe = useCallback(
    (listener: () => void) => {
      if (key === null) return () => {};
      const leave = enter(key);
      const stop = obtain(key).store.subscribe(listener);
      return () => {
        stop();
        leave();
      };
    },
    [key],
  );
  const snapshot = useSyncExternalStore(subscribe, () => (key === null ? NOTHING : (shared.get(key)?.store.snapshot ?? NOTHING)));
  const state = useConnection();
  const { staleSince, ...rest } = snapshot as Snapshot<T>;
  return { ...rest, stale: state === 'lost' || staleSince !== undefined, since: staleSince ?? live.heardAt };
}

/** The jobs of a namespace ('' for all), as slim rows. */
export function useRows(namespace: string | null, resource = 'jobs'): LiveData<Row[]> {
  return useSubscription(namespace === null ? null : { type: 'rows', resource, namespace });
}

/** Whole objects of a list in the Kubernetes API, at most 1,000: `useObjects<Pod>('/api/v1/namespaces/default/pods')`. */
export function useObjects<T>(path: string | null): LiveData<T[]> {
  return useSubscription(path === null ? null : { type: 'objects', path });
}

/** A page's view, computed by the server: `useView<JobView>('job', {kind, namespace, name})`. */
export function useView<T>(of: string, target: { kind?: string; namespace?: string; name?: string } | null): LiveData<T> {
  return useSubscription(target === null ? null : { type: 'view', of, ...target });
}

/** Whether the server is heard. */
export function useConnection() {
  return useSyncExternalStore(
    (listener) => live.onState(listener),
    () => live.state,
  );
}

/** Name the page in the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Paceline`;
  }, [title]);
}

if (typeof document !== 'undefined')
  document.addEventListener('visibilitychange', () => live.visibility(document.visibilityState === 'hidden'));
