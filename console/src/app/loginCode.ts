/**
 * The one-time code of a link that logs in: `/login#code=…`.
 *
 * It is taken out of the address when the script starts, so that it does not stay in the history; and not while something is
 * rendered, which React may do twice.
 */
import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let code = '';

export function takeLoginCode(): void {
  const taken = new URLSearchParams(location.hash.slice(1)).get('code') ?? '';
  if (location.pathname !== '/login' || taken === '') return;
  history.replaceState(null, '', location.pathname + location.search);
  setLoginCode(taken);
}

export function setLoginCode(next: string): void {
  code = next;
  for (const listener of listeners) listener();
}

export function useLoginCode(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => code,
  );
}

takeLoginCode();
// A second link that is opened in the same tab changes only the fragment.
window.addEventListener('hashchange', takeLoginCode);
