/** The text that is being written: it survives a reload and a new login. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { UNCHECKED, type Checked } from '../../forms/checks.ts';
import { parse, type Parsed } from '../../forms/document.ts';

const KEY = 'paceline.create';
const PARSE_AFTER = 150;
const CHECK_AFTER = 300;

interface Stored {
  url: string;
  text: string;
}

export function storedText(url: string): string | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Stored | null;
    return stored?.url === url && typeof stored.text === 'string' ? stored.text : null;
  } catch {
    return null;
  }
}

export function storeText(url: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, JSON.stringify({ url, text } satisfies Stored));
  } catch {
    // Without storage the text lives as long as the page.
  }
}

/** A value that follows another one when it has not changed for a moment; after 0 ms at once. */
export function useSettled<T>(value: T, after: number): T {
  const [settled, setSettled] = useState(value);
  if (after === 0 && !Object.is(settled, value)) setSettled(value);
  useEffect(() => {
    if (after === 0 || Object.is(settled, value)) return undefined;
    const timer = setTimeout(() => setSettled(value), after);
    return () => clearTimeout(timer);
  }, [value, settled, after]);
  return settled;
}

/** What the text means; while it is not YAML, what it meant last. */
export function useParsed(text: string, isTyping: boolean): { parsed: Parsed; isReadable: boolean; source: string } {
  // What the form writes is shown at once; what is typed in the editor, when the typing pauses.
  const source = useSettled(text, isTyping ? PARSE_AFTER : 0);
  const current = useMemo(() => parse(source), [source]);
  const last = useRef({ parsed: current, source });
  if (current.problems.length === 0) last.current = { parsed: current, source };
  return { ...last.current, isReadable: current.problems.length === 0 };
}

export interface CheckState {
  checked: Checked;
  /** The text that was checked. */
  text: string;
  isChecking: boolean;
  error: ApiError | undefined;
}

/** What the server says about the text, asked when it has not changed for a moment. */
export function useChecks(text: string, namespace: string, round: number): CheckState {
  const [state, setState] = useState<CheckState>({ checked: UNCHECKED, text: '', isChecking: true, error: undefined });
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, isChecking: true }));
    const timer = setTimeout(() => {
      api
        .post<Checked>('/api/check', { text, namespace }, { signal: abort.signal })
        .then((checked) => setState({ checked, text, isChecking: false, error: undefined }))
        .catch((failure: unknown) => {
          if (!abort.signal.aborted) setState({ checked: UNCHECKED, text, isChecking: false, error: asApiError(failure) });
        });
    }, CHECK_AFTER);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, namespace, round]);
  return state;
}
