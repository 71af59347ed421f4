/** What a chart shows, and the figures behind it: pure, so that tests need no canvas. */

export interface Series {
  name: string;
  /** Ascending: a step, or seconds (since 1970, or since the start). */
  x: readonly number[];
  /** `null`: nothing was measured there, and the line has a gap. */
  y: readonly (number | null)[];
  /** The range of the points that one point stands for, drawn as a band. */
  low?: readonly (number | null)[];
  high?: readonly (number | null)[];
  /** Index into the replica colours; by default the place in the list. After eight hues the line is dashed. */
  colour?: number;
  /** A line behind another one, as unsmoothed values are: no legend, no tooltip. */
  isFaint?: boolean;
}

/** A dashed horizontal line: a limit, a request. */
export interface Limit {
  name: string;
  value: number;
}

/** A vertical line: a restart, an event. */
export interface ChartMark {
  x: number;
  name: string;
}

export type XAxis = 'step' | 'time' | 'elapsed';

export interface ChartProps {
  /** What the chart shows, for people who do not see it. */
  label: string;
  series: readonly Series[];
  axis: XAxis;
  limits?: readonly Limit[];
  marks?: readonly ChartMark[];
  isLog?: boolean;
  /** The vertical axis begins at zero, as amounts of something used do. */
  isFromZero?: boolean;
  /** Charts with the same key move their cursors together. */
  sync?: string;
  height?: number;
  format?: (value: number) => string;
}

/** A number as short as it can be told from its neighbours: 4 significant digits. */
export function plainNumber(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(3).replace(/\.?0+e/, 'e').replace('e+', 'e');
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
}

const two = (value: number) => String(value).padStart(2, '0');

/** Seconds since 1970 as a local time, as exact as the distance of the marks demands. */
export function timeText(seconds: number, distance: number): string {
  const date = new Date(seconds * 1000);
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (distance >= 86400) return day;
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (distance >= 60) return date.getHours() === 0 && date.getMinutes() === 0 ? `${day} ${minutes}` : minutes;
  return `${minutes}:${two(date.getSeconds())}`;
}

/** Seconds since a start: 45s, 12:30, 3:05:00. */
export function elapsedText(seconds: number): string {
  const whole = Math.floor(Math.abs(seconds));
  const sign = seconds < 0 ? '-' : '';
  if (whole < 60) return `${sign}${plainNumber(Math.abs(seconds))}s`;
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours === 0 ? `${sign}${minutes}:${two(whole % 60)}` : `${sign}${hours}:${two(minutes)}:${two(whole % 60)}`;
}

export function xText(axis: XAxis, value: number, distance = 1): string {
  if (axis === 'time') return timeText(value, distance);
  return axis === 'elapsed' ? elapsedText(value) : plainNumber(value);
}

/** The index of the point nearest to x, or null where there is none. */
export function nearest(xs: readonly number[], x: number): number | null {
  if (xs.length === 0) return null;
  let [low, high] = [0, xs.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) < x) low = middle + 1;
    else high = middle;
  }
  const before = Math.max(0, low - 1);
  return Math.abs((xs[before] as number) - x) <= Math.abs((xs[low] as number) - x) ? before : low;
}

/** Exponential smoothing without the bias of the first values, as TensorBoard does it; gaps stay gaps. */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let [last, count] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    last = last * weight + (1 - weight) * value;
    count += 1;
    return weight === 1 ? last : last / (1 - weight ** count);
  });
}

type Column = (number | null | undefined)[];

/** Columns over one common x, as uPlot wants them. `undefined`: this series has no point there, and its line goes on. */
export function align(series: readonly Series[], isLog: boolean): [number[], ...Column[]] {
  const xs = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(xs.map((x, index) => [x, index]));
  const drawable = (value: number | null | undefined) =>
    value === null || value === undefined || !Number.isFinite(value) || (isLog && value <= 0) ? null : value;
  const columns = series.flatMap((line) =>
    columnsOf(line).map((values) => {
      const column: Column = new Array<undefined>(xs.length).fill(undefined);
      line.x.forEach((x, index) => (column[place.get(x) as number] = drawable(values[index])));
      return column;
    }),
  );
  return [xs, ...columns];
}

/** The line itself, and its band if it has one. */
export function columnsOf(line: Series): (readonly (number | null)[])[] {
  return line.low !== undefined && line.high !== undefined ? [line.y, line.high, line.low] : [line.y];
}
