import { useEffect, useState } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import type { Rendered } from './submit.ts';

const AFTER = 300;

export interface RenderState {
  rendered: Rendered | undefined;
  isBusy: boolean;
  error: ApiError | undefined;
}

/** What values would make, asked when they have not changed for a moment; `null` while there is nothing to ask. */
export function useRender(template: string, request: { name: string; namespace: string; values: unknown } | null): RenderState {
  const body = request === null ? null : JSON.stringify(request);
  const [state, setState] = useState<RenderState & { body: string | null }>({ rendered: undefined, isBusy: false, error: undefined, body: null });
  useEffect(() => {
    if (body === null) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.post<Rendered>(`/api/templates/${encodeURIComponent(template)}/render`, body, { signal: abort.signal }).then(
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
  }, [template, body]);
  if (body === null) return { rendered: undefined, isBusy: false, error: undefined };
  return { rendered: state.rendered, error: state.body === body ? state.error : undefined, isBusy: state.body !== body };
}
