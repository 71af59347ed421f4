/** Curves as the server sends them, and what is read from them: pure. */
import type { Series, XAxis } from '../parts/chart/series.ts';
import { smooth } from '../parts/chart/series.ts';

/** NaN and infinities come as words. */
type Value = number | string;

export interface CurvePoint {
  step: number;
  time: number;
  value: Value;
}

export interface Scalar {
  tag: string;
  count: number;
  last: CurvePoint;
  min?: CurvePoint;
  max?: CurvePoint;
  steps: number[];
  times: number[];
  values: Value[];
  low?: Value[];
  high?: Value[];
}

export interface CurveRun {
  name: string;
  scalars: Scalar[];
  faults: string[];
  truncated: boolean;
}

export interface JobCurves {
  source: 'events' | 'logs';
  folders: { claim: string; folder: string }[];
  runs: CurveRun[];
}

export interface CurveOptions {
  axis: XAxis;
  /** 0 to 0.99. */
  smoothing: number;
  isLog: boolean;
}

/** One line of a chart: which job and run, and in which colour. */
export interface Line {
  name: string;
  scalar: Scalar;
  colour: number;
}

export interface ChartGroup {
  tag: string;
  lines: Line[];
}

export function finite(value: Value): number | null {
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** The lines of every metric, metrics in the order of their names. Every run keeps its colour. */
export function groupByTag(runs: readonly { name: string; scalars: readonly Scalar[] }[]): ChartGroup[] {
  const groups = new Map<string, Line[]>();
  runs.forEach((run, colour) => {
    for (const scalar of run.scalars) {
      const lines = groups.get(scalar.tag) ?? [];
      lines.push({ name: run.name, scalar, colour });
      groups.set(scalar.tag, lines);
    }
  });
  return [...groups].map(([tag, lines]) => ({ tag, lines })).sort((a, b) => (a.tag < b.tag ? -1 : 1));
}

/** The series of a chart: the smoothed line, and the measured values faint behind it. */
export function seriesOf(lines: readonly Line[], { axis, smoothing }: CurveOptions): Series[] {
  return lines.flatMap(({ name, scalar, colour }) => {
    const { x, order } = axisOf(scalar, axis);
    const values = order.map((index) => finite(scalar.values[index] as Value));
    const base = { name, x, colour };
    if (smoothing > 0) return [{ ...base, name: `${name}\u0000`, y: values, isFaint: true }, { ...base, y: smooth(values, smoothing) }];
    const [low, high] = [scalar.low, scalar.high];
    if (low === undefined || high === undefined) return [{ ...base, y: values }];
    return [{ ...base, y: values, low: order.map((index) => finite(low[index] as Value)), high: order.map((index) => finite(high[index] as Value)) }];
  });
}

/** The horizontal places of the points, ascending; of points at the same place the last one counts. */
function axisOf(scalar: Scalar, axis: XAxis): { x: number[]; order: number[] } {
  const first = scalar.times.find((time) => time > 0) ?? 0;
  const places = axis === 'step' ? scalar.steps : scalar.times.map((time) => (axis === 'time' ? time : time - first));
  const last = new Map<number, number>();
  places.forEach((place, index) => last.set(place, index));
  const order = [...last.values()].sort((a, b) => (places[a] as number) - (places[b] as number));
  return { x: order.map((index) => places[index] as number), order };
}

const LESS = /^(loss|cost|error|err|mae|mse|rmse|mape|ppl|perplexity|wer|cer|fid)$/;
const MORE = /^(acc|accuracy|auc|f1|precision|recall|bleu|rouge|map|iou|miou|dice|reward|r2)$/;

/** Whether a lower value of a metric is the better one; `null` if its name does not say. As in presentation/metric_names.py. */
export function lessIsBetter(name: string): boolean | null {
  const words = [...(name.match(/[A-Z]?[a-z]+|[A-Z]+|\d+/g) ?? []), ...(name.match(/[A-Za-z]+\d*|\d+/g) ?? [])].map((word) => word.toLowerCase());
  if (words.some((word) => LESS.test(word))) return true;
  return words.some((word) => MORE.test(word)) ? false : null;
}

export function bestOf(scalar: Scalar): CurvePoint | undefined {
  const isLess = lessIsBetter(scalar.tag);
  return isLess === null ? undefined : isLess ? scalar.min : scalar.max;
}

/** The index of the best of several values; `null` if it cannot be said. */
export function bestIndex(tag: string, values: readonly (number | null)[]): number | null {
  const isLess = lessIsBetter(tag);
  if (isLess === null) return null;
  let best: number | null = null;
  values.forEach((value, index) => {
    if (value === null) return;
    const other = best === null ? null : (values[best] as number);
    if (other === null || (isLess ? value < other : value > other)) best = index;
  });
  return best;
}

/** A regular expression from what a person typed; `null` if it is none. */
export function patternOf(text: string): RegExp | null {
  try {
    return new RegExp(text, 'i');
  } catch {
    return null;
  }
}
