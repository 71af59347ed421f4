/** What a person chose in this browser. localStorage keeps this and the watched jobs (watches/store.ts), nothing else. */
import { useCallback, useSyncExternalStore } from 'react';

export type Language = 'en' | 'zh';
export type ThemeChoice = 'light' | 'dark' | 'system';
export type Density = 'compact' | 'comfortable';

export interface Preferences {
  language: Language;
  theme: ThemeChoice;
  density: Density;
  /** The namespace that lists show; empty for all. `null` until the person or the session chose one. */
  namespace: string | null;
  /** Namespaces that were typed by hand, since not everybody may list them. */
  namespaces: string[];
  logs: { wrap: boolean; stamps: boolean; fontSize: number; tail: number };
  /** Choices of pages, by a key of their own: columns, widths. */
  pages: Record<string, unknown>;
}

const KEY = 'paceline.preferences';

/** A line of a log is wider than a phone. */
function isPhone(): boolean {
  return typeof window !== 'undefined' && window.innerWidth < 600;
}

const DEFAULTS: Preferences = {
  language: typeof navigator !== 'undefined' && navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en',
  theme: 'system',
  density: 'compact',
  namespace: null,
  namespaces: [],
  logs: { wrap: isPhone(), stamps: true, fontSize: 12, tail: 5000 },
  pages: {},
};

function load(): Preferences {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Preferences>;
    return { ...DEFAULTS, ...stored, logs: { ...DEFAULTS.logs, ...stored.logs }, pages: { ...stored.pages } };
  } catch {
    return DEFAULTS;
  }
}

let current = load();
const listeners = new Set<() => void>();

export function preferences(): Preferences {
  return current;
}

export function setPreferences(patch: Partial<Preferences>): void {
  current = { ...current, ...patch };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // A browser that stores nothing keeps the choice until the tab closes.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Another tab of the same browser changed them.
if (typeof window !== 'undefined')
  window.addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    current = load();
    for (const listener of listeners) listener();
  });

export function usePreferences(): [Preferences, (patch: Partial<Preferences>) => void] {
  return [useSyncExternalStore(subscribe, preferences), setPreferences];
}

/** A choice of one page, kept over reloads: `useChoice('jobs.columns', ['name', 'phase'])`. */
export function useChoice<T>(key: string, initial: T): [T, (value: T) => void] {
  const [{ pages }] = usePreferences();
  const value = key in pages ? (pages[key] as T) : initial;
  const keep = useCallback((next: T) => setPreferences({ pages: { ...current.pages, [key]: next } }), [key]);
  return [value, keep];
}
