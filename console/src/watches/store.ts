/**
 * The jobs whose end is announced in this browser. localStorage has the list, so that it survives a reload and all tabs share it:
 * a tab that sees the end of a job first takes its watch out of the list, and only who takes it announces.
 */
import { useSyncExternalStore } from 'react';
import type { Row } from '../app/rows.ts';

export interface Watch {
  uid: string;
  namespace: string;
  kind: string;
  name: string;
  /** When it was added, in milliseconds. */
  since: number;
}

const KEY = 'paceline.watches';
const LOCK = 'paceline.watches';
/** More are not watched: the oldest go. */
export const MOST = 50;
/** A job that was never seen again may belong to another cluster that had this address. */
const LIFETIME = 30 * 24 * 3600 * 1000;

/** Read what is stored; whatever is no watch, or too old, is left out. */
export function readWatches(text: string | null, now: number): Watch[] {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(stored)) return [];
  return stored.filter((entry: unknown): entry is Watch => isWatch(entry) && now - entry.since < LIFETIME).slice(-MOST);
}

function isWatch(entry: unknown): entry is Watch {
  if (typeof entry !== 'object' || entry === null) return false;
  const { since, ...rest } = entry as Record<string, unknown>;
  return typeof since === 'number' && ['uid', 'namespace', 'kind', 'name'].every((key) => typeof rest[key] === 'string' && rest[key] !== '');
}

/** A watched job that has ended: its row, or `null` if it was deleted. */
export interface End {
  watch: Watch;
  row: Row | null;
}

const FINAL = ['Succeeded', 'Failed'];

/**
 * The watched jobs of a list that have ended. A job that the list does not have was deleted only if it was there before: `seen` has
 * the uids that were, and grows.
 */
export function endsIn(rows: readonly Row[], watches: readonly Watch[], seen: Set<string>): End[] {
  const wanted = new Set(watches.map(({ uid }) => uid));
  const present = new Map(rows.filter((row) => wanted.has(row.uid)).map((row) => [row.uid, row]));
  const ends: End[] = [];
  for (const watch of watches) {
    const row = present.get(watch.uid);
    if (row === undefined ? seen.has(watch.uid) : FINAL.includes(row.phase)) ends.push({ watch, row: row ?? null });
    if (row !== undefined) seen.add(watch.uid);
  }
  return ends;
}

function load(): Watch[] {
  try {
    return readWatches(localStorage.getItem(KEY), Date.now());
  } catch {
    return current;
  }
}

let current: Watch[] = [];
if (typeof window !== 'undefined') current = load();
const listeners = new Set<() => void>();

function store(watches: Watch[]): void {
  current = watches;
  try {
    localStorage.setItem(KEY, JSON.stringify(watches));
  } catch {
    // A browser that stores nothing watches until the tab closes.
  }
  for (const listener of listeners) listener();
}

// Another tab of the same browser changed them.
if (typeof window !== 'undefined')
  window.addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    current = load();
    for (const listener of listeners) listener();
  });

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useWatches(): readonly Watch[] {
  return useSyncExternalStore(subscribe, () => current);
}

export function addWatch({ uid, namespace, kind, name }: Omit<Watch, 'since'>): void {
  store([...load().filter((watch) => watch.uid !== uid), { uid, namespace, kind, name, since: Date.now() }].slice(-MOST));
}

export function removeWatch(uid: string): boolean {
  const before = load();
  const after = before.filter((watch) => watch.uid !== uid);
  if (after.length === before.length) return false;
  store(after);
  return true;
}

/** How long the tab that has taken a watch keeps its lock, in milliseconds: another tab may still read the list of before. */
const KEPT = 10_000;

/** Take a watch out of the list; `false` if another tab was faster. Without locks (plain HTTP) two tabs may both be first. */
export function takeWatch(uid: string): Promise<boolean> {
  const { locks } = navigator as { locks?: LockManager };
  if (locks === undefined) return Promise.resolve(removeWatch(uid));
  return new Promise((resolve, reject) => {
    const take = async (lock: Lock | null) => {
      const isFirst = lock !== null && (await locks.request(LOCK, () => removeWatch(uid)));
      resolve(isFirst);
      if (isFirst) await new Promise((wake) => setTimeout(wake, KEPT));
    };
    locks.request(`${LOCK}.${uid}`, { ifAvailable: true }, take).catch(reject);
  });
}
