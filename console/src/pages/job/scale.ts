/** Where spans of time lie on a line, in percent, and which times are marked below it. */
import type { Span, TimelineRow } from './view.ts';

export interface Extent {
  start: number;
  end: number;
}

/** From the first moment of all spans to the last one; now while something lasts. Never empty. */
export function extentOf(rows: readonly TimelineRow[], now: number): Extent {
  let [start, end] = [Infinity, -Infinity];
  for (const { spans } of rows)
    for (const span of spans) {
      start = Math.min(start, Date.parse(span.start));
      end = Math.max(end, span.end === null ? now : Date.parse(span.end));
    }
  if (start === Infinity) return { start: now - 1000, end: now };
  return { start, end: Math.max(end, start + 1000) };
}

export interface Box {
  left: number;
  width: number;
}

/** No bar is thinner than this, in percent: what lasted a second must still be seen and hit. */
const THINNEST = 0.4;

export function boxOf(span: Span, extent: Extent, now: number): Box {
  const length = extent.end - extent.start;
  const start = Date.parse(span.start);
  const end = span.end === null ? now : Date.parse(span.end);
  const width = Math.max(((end - start) / length) * 100, THINNEST);
  const left = Math.min(((start - extent.start) / length) * 100, 100 - width);
  return { left: Math.max(0, left), width: Math.min(width, 100) };
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800].map((seconds) => seconds * 1000);

/** Round durations since the beginning, at most `most` of them. */
export function ticksOf({ start, end }: Extent, most: number): { at: number; elapsed: number }[] {
  const length = end - start;
  const step = STEPS.find((candidate) => length / candidate <= most) ?? Math.ceil(length / most / 604_800_000) * 604_800_000;
  const ticks = [];
  for (let elapsed = 0; elapsed <= length; elapsed += step) ticks.push({ at: (elapsed / length) * 100, elapsed });
  return ticks;
}
