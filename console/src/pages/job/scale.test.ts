import { describe, expect, it } from 'vitest';
import { boxOf, extentOf, ticksOf } from './scale.ts';
import type { Span, TimelineRow } from './view.ts';

const ZERO = Date.parse('2030-01-31T12:00:00Z');
const at = (seconds: number) => new Date(ZERO + seconds * 1000).toISOString();
const span = (start: number, end: number | null): Span => ({ attempt: 0, pod: 'p', node: '', state: 'Running', start: at(start), end: end === null ? null : at(end), exitCode: null, reason: '' });
const rows = (...spans: Span[]): TimelineRow[] => [{ replica: 'worker-0', isLeader: true, spans }];

describe('the extent of a timeline', () => {
  it('reaches from the first start to the last end', () => {
    expect(extentOf(rows(span(10, 20), span(30, 60)), ZERO)).toEqual({ start: ZERO + 10_000, end: ZERO + 60_000 });
  });

  it('reaches to now while something runs, and is never empty', () => {
    expect(extentOf(rows(span(0, null)), ZERO + 90_000).end).toBe(ZERO + 90_000);
    const empty = extentOf(rows(span(5, 5)), ZERO);
    expect(empty.end - empty.start).toBeGreaterThan(0);
    expect(extentOf([], ZERO).end).toBe(ZERO);
  });
});

describe('a bar', () => {
  const extent = { start: ZERO, end: ZERO + 100_000 };

  it('lies where its time is', () => {
    expect(boxOf(span(25, 75), extent, 0)).toEqual({ left: 25, width: 50 });
  });

  it('is thick enough to be hit, and stays inside', () => {
    const box = boxOf(span(100, 100), extent, 0);
    expect(box.width).toBeGreaterThan(0.3);
    expect(box.left + box.width).toBeLessThanOrEqual(100);
  });
});

describe('ticks', () => {
  it('are round and few', () => {
    expect(ticksOf({ start: 0, end: 62_000 }, 7).map((tick) => tick.elapsed / 1000)).toEqual([0, 10, 20, 30, 40, 50, 60]);
    expect(ticksOf({ start: 0, end: 90 * 86_400_000 }, 6).length).toBeLessThanOrEqual(7);
  });
});
