/** Which jobs the list shows, and in which order. The URL is its only home. */
import type { Row } from '../../app/rows.ts';

export interface JobFilter {
  /** Words that name, reason, queue or application contain, all of them. */
  text: string;
  phases: string[];
  kinds: string[];
  /** `key=value` or `key`. */
  labels: string[];
  queues: string[];
  /** A column's key, with a `-` in front for descending. */
  sort: string;
}

export const DEFAULT_SORT = '-created';
const LISTS = { phases: 'phase', kinds: 'kind', labels: 'label', queues: 'queue' } as const;
export type FilterList = keyof typeof LISTS;

export const KINDS = ['PyTorchTrainingJob', 'TensorFlowTrainingJob', 'XGBoostTrainingJob', 'MPIJob', 'GenericJob', 'ColossalAIJob', 'DeepSpeedJob', 'BeamJob'];
const LONGEST_TEXT = 500;
const MOST_VALUES = 50;
const LABEL = /^[A-Za-z0-9][-\w./]{0,316}(=[-\w.]{0,63})?$/;

/** Read the filter of a URL, which anybody may have written: values that no job can have are ignored. */
export function readFilter(query: URLSearchParams): JobFilter {
  const list = (name: string, isValid: (item: string) => boolean) => [...new Set((query.get(name) ?? '').split(','))].filter(isValid).slice(0, MOST_VALUES);
  const sort = query.get('sort') ?? '';
  return {
    text: (query.get('q') ?? '').slice(0, LONGEST_TEXT),
    phases: list(LISTS.phases, (phase) => PHASE_ORDER.includes(phase)),
    kinds: list(LISTS.kinds, (kind) => KINDS.includes(kind)),
    labels: list(LISTS.labels, (label) => LABEL.test(label)),
    queues: list(LISTS.queues, (queue) => queue !== '' && queue.length <= 253),
    sort: Object.hasOwn(KEYS, sort.replace(/^-/, '')) ? sort : DEFAULT_SORT,
  };
}

/** The parameters of the URL for a part of a filter. */
export function writeFilter(patch: Partial<JobFilter>): Record<string, string | null> {
  const query: Record<string, string | null> = {};
  if (patch.text !== undefined) query.q = patch.text || null;
  if (patch.sort !== undefined) query.sort = patch.sort === DEFAULT_SORT ? null : patch.sort;
  for (const [name, parameter] of Object.entries(LISTS) as [FilterList, string][]) {
    const items = patch[name];
    if (items !== undefined) query[parameter] = items.join(',') || null;
  }
  return query;
}

export const NO_FILTER: Partial<JobFilter> = { text: '', phases: [], kinds: [], labels: [], queues: [] };

export function isFiltered(filter: JobFilter): boolean {
  return filter.text.trim() !== '' || [filter.phases, filter.kinds, filter.labels, filter.queues].some((list) => list.length > 0);
}

export function filterRows(rows: readonly Row[], filter: JobFilter): Row[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const phases = new Set(filter.phases);
  const kinds = new Set(filter.kinds);
  const queues = new Set(filter.queues);
  const labels = filter.labels.map((label) => {
    const at = label.indexOf('=');
    return at < 0 ? ([label, undefined] as const) : ([label.slice(0, at), label.slice(at + 1)] as const);
  });
  return rows.filter(
    (row) =>
      (phases.size === 0 || phases.has(row.phase)) &&
      (kinds.size === 0 || kinds.has(row.kind)) &&
      (queues.size === 0 || queues.has(row.queue)) &&
      labels.every(([key, value]) => Object.hasOwn(row.labels, key) && (value === undefined || row.labels[key] === value)) &&
      words.every((word) => contains(row, word)),
  );
}

// Every key press searches all rows, which are new objects whenever they change.
const haystacks = new WeakMap<Row, string>();

function contains(row: Row, word: string): boolean {
  let haystack = haystacks.get(row);
  if (haystack === undefined) {
    // Words have no white space, so none is found across two fields.
    haystack = [row.name, row.reason, row.queue, row.app].join('\n').toLowerCase();
    haystacks.set(row, haystack);
  }
  return haystack.includes(word);
}

type Key = string | number;

const KEYS: Record<string, (row: Row) => Key> = {
  name: (row) => row.name,
  namespace: (row) => row.namespace,
  kind: (row) => row.kind,
  phase: (row) => PHASE_ORDER.indexOf(row.phase),
  replicas: (row) => wanted(row),
  cpu: (row) => row.cpuRequest,
  memory: (row) => row.memoryRequest,
  devices: (row) => Object.values(row.devices).reduce((sum, count) => sum + count, 0),
  queue: (row) => row.queue,
  priority: (row) => Number(row.priority) || 0,
  restarts: (row) => row.restarts,
  duration: (row) => durationOf(row) ?? -1,
  created: (row) => row.created,
};

/** What needs a look comes first. */
const PHASE_ORDER = ['Failed', 'Unknown', 'Pending', 'Resuming', 'Running', 'Paused', 'Succeeded'];

/** Sort by a column; jobs that are equal there are ordered by creation, newest first, then by name. */
export function sortRows(rows: readonly Row[], sort: string): Row[] {
  const isDescending = sort.startsWith('-');
  const name = isDescending ? sort.slice(1) : sort;
  const keyOf = Object.hasOwn(KEYS, name) ? KEYS[name] : KEYS.created;
  const direction = isDescending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: keyOf!(row) }));
  keyed.sort((one, other) => compare(one.key, other.key) * direction || compare(other.row.created, one.row.created) || compare(one.row.name, other.row.name));
  return keyed.map((entry) => entry.row);
}

function compare(one: Key, other: Key): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

export function ready(row: Row): number {
  return Object.values(row.replicas).reduce((sum, [count]) => sum + count, 0);
}

export function wanted(row: Row): number {
  return Object.values(row.replicas).reduce((sum, [, count]) => sum + count, 0);
}

/** How long a job has run, in milliseconds; `undefined` before it started. */
export function durationOf(row: Row, now = Date.now()): number | undefined {
  if (row.started === '') return undefined;
  return (row.ended === '' ? now : Date.parse(row.ended)) - Date.parse(row.started);
}

export interface Facet {
  value: string;
  count: number;
}

/** Whether a control for a facet would look the same: the filter of a URL is read anew at every key, so equal choices are new lists. */
export function sameFacet<P extends { chosen: string[] }>(one: P, other: P): boolean {
  const keys = Object.keys(one) as (keyof P)[];
  return keys.length === Object.keys(other).length && keys.every((key) => (key === 'chosen' ? one.chosen.join() === other.chosen.join() : one[key] === other[key]));
}

export interface Facets {
  phases: Facet[];
  kinds: Facet[];
  labels: Facet[];
  queues: Facet[];
}

const MAX_LABELS = 200;

/** The values that a filter can have, with the number of jobs; the most frequent first. */
export function facetsOf(rows: readonly Row[]): Facets {
  const counts: Record<FilterList, Map<string, number>> = { phases: new Map(), kinds: new Map(), labels: new Map(), queues: new Map() };
  const add = (map: Map<string, number>, value: string) => map.set(value, (map.get(value) ?? 0) + 1);
  for (const row of rows) {
    add(counts.phases, row.phase);
    add(counts.kinds, row.kind);
    if (row.queue !== '') add(counts.queues, row.queue);
    for (const key in row.labels) add(counts.labels, `${key}=${row.labels[key] ?? ''}`);
  }
  const facets = (map: Map<string, number>) =>
    [...map].map(([value, count]) => ({ value, count })).sort((one, other) => other.count - one.count || compare(one.value, other.value));
  return {
    phases: facets(counts.phases).sort((one, other) => PHASE_ORDER.indexOf(one.value) - PHASE_ORDER.indexOf(other.value)),
    kinds: facets(counts.kinds),
    labels: facets(counts.labels).slice(0, MAX_LABELS),
    queues: facets(counts.queues),
  };
}
