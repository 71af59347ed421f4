/** What can be done on the page that is shown. A page names it, and the command palette lists it. */
import { useEffect, useRef, type ReactNode } from 'react';

export interface Command {
  /** Unique on the page. */
  id: string;
  label: string;
  icon?: ReactNode;
  run: () => void;
}

const pages = new Set<{ current: readonly Command[] }>();

export function pageCommands(): Command[] {
  return [...pages].flatMap((page) => page.current);
}

/** Offer commands while the component is shown. */
export function usePageCommands(commands: readonly Command[]): void {
  const entry = useRef(commands);
  useEffect(() => {
    entry.current = commands;
  });
  useEffect(() => {
    pages.add(entry);
    return () => {
      pages.delete(entry);
    };
  }, []);
}
