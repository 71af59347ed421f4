import { useEffect, useState } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import type { Rendered } from './submit.ts';

const AFTER = 300;

export interface RenderState<T extends Rendered = Rendered> {
  rendered: T | undefined;
  isBusy: boolean;
  error: ApiError | undefined;
}

export function renderPath(template: string): string {
  return `/api/templates/${encodeURIComponent(template)}/render`;
}

/** What values would make, asked when they have not changed for a moment; `null` while there is nothing to ask. */
export function useRender<T extends Rendered = Rendered>(path: string, request: object | null): RenderState<T> {
  const body = request === null ? null : JSON.stringify(request);
  const [state, setState] = useState<RenderState<T> & { body: string | null }>({ rendered: undefined, isBusy: false, error: undefined, body: null });
  useEffect(() => {
    if (body === null) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.post<T>(path, body, { signal: abort.signal }).then(
        (rendered) => setState({ rendered, isBusy: false, error: undefined, body }),
        (failure: unknown) => {
          if (!abort.signal.aborted) setState({ rendered: undefined, isBusy: false, error: asApiError(failure), body });
        },
      );
    }, AFTER);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, body]);
  if (body === null) return { rendered: undefined, isBusy: false, error: undefined };
  return { rendered: state.rendered, error: state.body === body ? state.error : undefined, isBusy: state.body !== body };
}
