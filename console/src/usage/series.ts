/** Use over time as /api/usage answers it, and as charts need it. */

export const FIELDS = ['cpu', 'memory', 'gpu', 'gpuMemory', 'diskRead', 'diskWrite', 'networkIn', 'networkOut'] as const;
export type Field = (typeof FIELDS)[number];

interface Bands {
  min: (number | null)[];
  mean: (number | null)[];
  max: (number | null)[];
}

export interface UsageItem {
  pod?: string;
  uid?: string;
  container?: string;
  node?: string;
  requests?: Record<string, number>;
  limits?: Record<string, number>;
  times: number[];
  values: Partial<Record<Field, Bands>>;
}

export interface UsageAnswer {
  source: 'node' | 'prometheus' | 'metrics';
  from: number;
  to: number;
  step: number;
  items: UsageItem[];
}

/** One line of a chart: values at the chart's times, `null` where nothing is known. */
export interface Line {
  label: string;
  colour: number;
  values: (number | null)[];
  /** The largest value, also between the points that are drawn. */
  most: number;
  mean: number;
}

/** A request or limit, drawn as a dashed line. */
export interface Mark {
  kind: 'request' | 'limit';
  value: number;
  labels: string[];
}

export interface ChartData {
  field: Field;
  times: number[];
  lines: Line[];
  marks: Mark[];
}

export interface Owner {
  label: string;
  colour: number;
}

const RESOURCES: Partial<Record<Field, string>> = { cpu: 'cpu', memory: 'memory', gpu: 'nvidia.com/gpu' };

/** The charts of what owners (replicas, nodes) used; `ownerOf` says to whom a series belongs, and nothing for none. */
export function chartsOf(items: readonly UsageItem[], ownerOf: (item: UsageItem) => Owner | undefined, step = Infinity): ChartData[] {
  const times = withGaps([...new Set(items.flatMap((item) => item.times))].sort((a, b) => a - b), step * 3);
  const places = new Map(times.map((time, index) => [time, index]));
  return FIELDS.flatMap((field) => {
    const lines = new Map<string, Line>();
    const marks = new Map<string, Mark>();
    for (const item of items) {
      const owner = ownerOf(item);
      const bands = item.values[field];
      if (owner === undefined || bands === undefined) continue;
      addTo(line(lines, owner, times.length), item.times, bands, places);
      addMarks(marks, item, field, owner.label);
    }
    if (lines.size === 0) return [];
    return [{ field, times, lines: [...lines.values()].map(summed).sort((one, other) => one.colour - other.colour), marks: [...marks.values()] }];
  });
}

/** Add a time after each before a long pause: a time without a value interrupts a line. */
function withGaps(times: number[], longest: number): number[] {
  return times.flatMap((time, index) => ((times[index + 1] ?? time) - time > longest ? [time, time + longest / 3] : [time]));
}

function line(lines: Map<string, Line>, owner: Owner, length: number): Line {
  const present = lines.get(owner.label);
  if (present) return present;
  const made = { ...owner, values: new Array<number | null>(length).fill(null), most: 0, mean: 0 };
  lines.set(owner.label, made);
  return made;
}

function addTo(target: Line, times: number[], bands: Bands, places: Map<number, number>): void {
  times.forEach((time, index) => {
    const value = bands.mean[index] ?? null;
    const place = places.get(time);
    if (value === null || place === undefined) return;
    target.values[place] = (target.values[place] ?? 0) + value;
    target.most = Math.max(target.most, bands.max[index] ?? value, target.values[place] ?? 0);
  });
}

function summed(target: Line): Line {
  const known = target.values.filter((value) => value !== null);
  return { ...target, mean: known.reduce((sum, value) => sum + value, 0) / (known.length || 1) };
}

function addMarks(marks: Map<string, Mark>, item: UsageItem, field: Field, label: string): void {
  const resource = RESOURCES[field];
  if (resource === undefined) return;
  for (const [kind, amounts] of [['request', item.requests], ['limit', item.limits]] as const) {
    const value = amounts?.[resource];
    if (value === undefined || value === 0) continue;
    const key = `${kind} ${value}`;
    const mark = marks.get(key) ?? { kind, value, labels: [] };
    if (!mark.labels.includes(label)) mark.labels.push(label);
    marks.set(key, mark);
  }
}

/** Add the points of a newer answer to those of an older one, for a source that knows only what is used now. */
export function gathered(older: UsageAnswer | undefined, newer: UsageAnswer, most = 2000): UsageAnswer {
  if (newer.source !== 'metrics' || older === undefined) return newer;
  const items = new Map(older.items.map((item) => [keyOf(item), item]));
  for (const item of newer.items) {
    const present = items.get(keyOf(item));
    items.set(keyOf(item), present === undefined ? item : joined(present, item, most));
  }
  return { ...newer, from: older.from, items: [...items.values()] };
}

function keyOf(item: UsageItem): string {
  return `${item.uid ?? ''}/${item.container ?? ''}`;
}

function joined(older: UsageItem, newer: UsageItem, most: number): UsageItem {
  const values: UsageItem['values'] = {};
  for (const field of FIELDS) {
    const [before, after] = [older.values[field], newer.values[field]];
    if (before === undefined || after === undefined) continue;
    values[field] = {
      min: [...before.min, ...after.min].slice(-most),
      mean: [...before.mean, ...after.mean].slice(-most),
      max: [...before.max, ...after.max].slice(-most),
    };
  }
  return { ...newer, times: [...older.times, ...newer.times].slice(-most), values };
}

export const RANGES = { run: 0, '15m': 900, '1h': 3600, '6h': 21_600, '1d': 86_400, '7d': 604_800 } as const;
export type Range = keyof typeof RANGES;

/** How long to wait before asking again, in milliseconds: as long as a point is wide, within reason. */
export function pauseOf(step: number): number {
  return Math.min(Math.max(step, 5), 60) * 1000;
}
