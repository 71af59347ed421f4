/** Keyboard: one registry, so that `?` can list everything that works on this page. */
import { createContext, useContext, useLayoutEffect, useRef, type ReactNode } from 'react';

interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
}

const shortcuts = new Set<{ current: Shortcut }>();

export function activeShortcuts(): Shortcut[] {
  return [...shortcuts].map((entry) => entry.current);
}

/**
 * Do something at a key, or at two in a row (`'g j'`), as soon as the component is seen. Letters do nothing while a field is edited.
 * The list of shortcuts has them in the order of the components on the page.
 */
export function useShortcut(keys: string, label: string, run: () => void): void {
  const entry = useRef<Shortcut>({ keys, label, run });
  useLayoutEffect(() => {
    entry.current = { keys, label, run };
  });
  useLayoutEffect(() => {
    shortcuts.add(entry);
    return () => {
      shortcuts.delete(entry);
    };
  }, []);
}

function isEditing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('.xterm, .cm-editor') !== null;
}

/** Listens to the keyboard for the whole page. */
export function KeyboardProvider({ children }: { children: ReactNode }) {
  useLayoutEffect(() => {
    let first = '';
    let forget: ReturnType<typeof setTimeout> | undefined;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isEditing(event.target) || document.querySelector('.ant-modal-wrap:not([style*="display: none"]), dialog[open]')) return;
      const pair = first === '' ? '' : `${first} ${event.key}`;
      const shortcut = activeShortcuts().find((candidate) => candidate.keys === pair) ?? activeShortcuts().find((candidate) => candidate.keys === event.key);
      clearTimeout(forget);
      first = shortcut === undefined ? event.key : '';
      forget = setTimeout(() => (first = ''), 1000);
      if (shortcut === undefined) return;
      event.preventDefault();
      shortcut.run();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
  return children;
}

const AnnounceContext = createContext<(text: string) => void>(() => {});
export const AnnounceProvider = AnnounceContext.Provider;

/** Say something to screen readers, politely. */
export function useAnnounce(): (text: string) => void {
  return useContext(AnnounceContext);
}
