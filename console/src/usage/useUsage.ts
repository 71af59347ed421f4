/** Use over time, asked for again as long as it grows and somebody looks. */
import { useEffect, useState } from 'react';
import { api, asApiError, type ApiError } from '../app/api.ts';
import { gathered, pauseOf, type UsageAnswer } from './series.ts';

export interface Usage {
  answer: UsageAnswer | undefined;
  error: ApiError | undefined;
}

/** `query` is that of /api/usage, `null` for none; what does not grow is asked for once. */
export function useUsage(query: string | null, grows: boolean): Usage {
  const [usage, setUsage] = useState<Usage>({ answer: undefined, error: undefined });
  useEffect(() => {
    if (query === null) return;
    const control = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last: UsageAnswer | undefined;
    const ask = async () => {
      if (document.visibilityState === 'visible' || last === undefined)
        try {
          last = gathered(last, await api.get<UsageAnswer>(`/api/usage?${query}`, { signal: control.signal }));
          setUsage({ answer: last, error: undefined });
        } catch (error) {
          if (control.signal.aborted) return;
          setUsage((before) => ({ ...before, error: asApiError(error) }));
        }
      if (grows && !control.signal.aborted) timer = setTimeout(() => void ask(), pauseOf(last?.step ?? 15));
    };
    void ask();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [query, grows]);
  return usage;
}
