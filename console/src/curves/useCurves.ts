/** The curves of jobs, read again while they run. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { api, asApiError, type ApiError } from '../app/api.ts';
import type { JobCurves } from './data.ts';

export interface JobRef {
  namespace: string;
  kind: string;
  name: string;
}

const AGAIN = 10_000;

export function readCurves({ namespace, kind, name }: JobRef, query: Record<string, string>, signal?: AbortSignal): Promise<JobCurves> {
  const path = [namespace, kind, name].map(encodeURIComponent).join('/');
  return api.get<JobCurves>(`/api/curves/${path}?${new URLSearchParams(query).toString()}`, signal ? { signal } : {});
}

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isBusy: boolean;
  refresh: () => void;
}

/** Something that is asked for, again after a while as long as it changes; old data stay until new ones are there. */
export function usePolled<T>(key: string, load: (signal: AbortSignal) => Promise<T>, isChanging: boolean): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key });
  const [isBusy, setBusy] = useState(false);
  const [count, setCount] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const abort = new AbortController();
    setBusy(true);
    latest.current(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data }),
      (failure: unknown) => !abort.signal.aborted && setState((old) => ({ ...(old.key === key ? old : { key }), error: asApiError(failure) })),
    ).finally(() => !abort.signal.aborted && setBusy(false));
    return () => abort.abort();
  }, [key, count]);
  const refresh = useCallback(() => setCount((old) => old + 1), []);
  useEffect(() => {
    if (!isChanging || isBusy) return undefined;
    const timer = setTimeout(() => document.visibilityState === 'visible' && refresh(), AGAIN);
    return () => clearTimeout(timer);
  }, [isChanging, isBusy, refresh, count]);
  const isCurrent = state.key === key;
  return { data: isCurrent ? state.data : undefined, error: isCurrent ? state.error : undefined, isBusy, refresh };
}
