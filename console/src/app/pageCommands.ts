/** What can be done on the page that is shown. A page names it, and the command palette lists it. */
import { useLayoutEffect, useRef, useSyncExternalStore, type ReactNode } from 'react';

export interface Command {
  /** Unique on the page. */
  id: string;
  label: string;
  icon?: ReactNode;
  run: () => void;
}

const pages = new Map<symbol, readonly Command[]>();
const listeners = new Set<() => void>();
let current: readonly Command[] = [];

function publish(): void {
  current = [...pages.values()].flat();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The commands of the page, also those that it names later, when its data have come. */
export function usePageCommands(): readonly Command[] {
  return useSyncExternalStore(subscribe, () => current);
}

/** Offer commands while the component is shown. */
export function useCommands(commands: readonly Command[]): void {
  const page = useRef(Symbol());
  useLayoutEffect(() => {
    pages.set(page.current, commands);
    publish();
  });
  useLayoutEffect(() => {
    const { current: key } = page;
    return () => {
      pages.delete(key);
      publish();
    };
  }, []);
}
