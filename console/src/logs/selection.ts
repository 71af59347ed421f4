// Which of a job's logs a pane shows, what they are called, and how that stands in the address of the page.

import { MAX_LOGS } from './order.ts';
import type { LogSource } from './stream.ts';

export type Attempt = 'latest' | 'all' | number;

export interface PaneState {
  /** Chosen replicas by `nameOf`; null for all but auxiliary containers. */
  chosen: string[] | null;
  attempt: Attempt;
  layout: 'merged' | 'side';
  find: string;
  isRegex: boolean;
  matchCase: boolean;
  onlyMatching: boolean;
  context: number;
  level: number;
  /** Stamps; empty for no bound. */
  from: string;
  to: string;
}

export const INITIAL: PaneState = {
  chosen: null,
  attempt: 'latest',
  layout: 'merged',
  find: '',
  isRegex: false,
  matchCase: false,
  onlyMatching: false,
  context: 0,
  level: 0,
  from: '',
  to: '',
};

/** Side by side no more than this many are readable. */
export const MAX_COLUMNS = 4;

export function isFiltered(state: PaneState): boolean {
  return (state.onlyMatching && state.find !== '') || state.level > 0 || state.from !== '' || state.to !== '';
}

export function attemptsOf(sources: readonly LogSource[]): number[] {
  return [...new Set(sources.map((source) => source.attempt))].sort((one, other) => one - other);
}

/** The logs of one attempt; the latest is each replica's own, since replicas may restart alone. */
export function ofAttempt(sources: readonly LogSource[], attempt: Attempt): LogSource[] {
  if (attempt === 'all') return [...sources];
  if (attempt !== 'latest') return sources.filter((source) => source.attempt === attempt);
  const latest = new Map<string, number>();
  for (const { replica, attempt } of sources) latest.set(replica, Math.max(latest.get(replica) ?? 0, attempt));
  return sources.filter((source) => source.attempt === latest.get(source.replica));
}

/** What a log is called in the pane: the replica, and the container where it has several. */
export function nameOf(source: LogSource, sources: readonly LogSource[]): string {
  const isPlain = !source.auxiliary && sources.every((other) => other.replica !== source.replica || other.auxiliary || other.container === source.container);
  return isPlain ? source.replica : `${source.replica}/${source.container}`;
}

/** What stands before each line; with the attempt where several are shown. */
export function prefixOf(source: LogSource, sources: readonly LogSource[], attempt: Attempt): string {
  const name = nameOf(source, sources);
  return attempt === 'all' && attemptsOf(sources).length > 1 ? `${name} r${source.attempt}` : name;
}

/** The logs to show, in their order, and how many were left out because a tab follows no more. */
export function shownSources(sources: readonly LogSource[], state: PaneState): { shown: LogSource[]; left: number } {
  const { chosen } = state;
  const wanted = ofAttempt(sources, state.attempt).filter((source) =>
    chosen ? chosen.includes(nameOf(source, sources)) : !source.auxiliary,
  );
  return { shown: wanted.slice(0, MAX_LOGS), left: Math.max(0, wanted.length - MAX_LOGS) };
}

/** The state that an address asks for. */
export function stateOf(query: URLSearchParams): PaneState {
  const attempt = query.get('attempt');
  const number = (name: string, most: number) => Math.min(most, Math.max(0, Math.trunc(Number(query.get(name) ?? 0)) || 0));
  return {
    chosen: query.has('replicas') ? query.get('replicas')!.split(',').filter((name) => name !== '') : null,
    attempt: attempt === 'all' ? 'all' : attempt !== null && /^\d{1,6}$/.test(attempt) ? Number(attempt) : 'latest',
    layout: query.get('layout') === 'side' ? 'side' : 'merged',
    find: query.get('find') ?? '',
    isRegex: query.has('regex'),
    matchCase: query.has('case'),
    onlyMatching: query.has('only'),
    context: number('context', 100),
    level: number('level', 2),
    from: query.get('from') ?? '',
    to: query.get('to') ?? '',
  };
}

/** The parameters of an address that asks for a state; null removes one. */
export function queryOf(state: PaneState): Record<string, string | null> {
  return {
    replicas: state.chosen ? state.chosen.join(',') || ',' : null,
    attempt: state.attempt === 'latest' ? null : String(state.attempt),
    layout: state.layout === 'side' ? 'side' : null,
    find: state.find || null,
    regex: state.isRegex ? '1' : null,
    case: state.matchCase ? '1' : null,
    only: state.onlyMatching ? '1' : null,
    context: state.context > 0 ? String(state.context) : null,
    level: state.level > 0 ? String(state.level) : null,
    from: state.from || null,
    to: state.to || null,
  };
}

/** One line of a log, as it stands in an address: `POD/CONTAINER@STAMP`, and its place among lines with that stamp. */
export interface LineLink {
  pod: string;
  container: string;
  stamp: string;
  nth: number;
}

export function formatLink({ pod, container, stamp, nth }: LineLink): string {
  return `${pod}/${container}@${stamp}${nth > 0 ? `+${nth}` : ''}`;
}

export function parseLink(text: string | null): LineLink | null {
  // A plus that nobody encoded arrives as a space.
  const match = /^([^/@]+)\/([^/@]+)@([0-9TZ:.-]+)(?:[+ ](\d{1,9}))?$/.exec(text ?? '');
  return match ? { pod: match[1]!, container: match[2]!, stamp: match[3]!, nth: Number(match[4] ?? 0) } : null;
}
