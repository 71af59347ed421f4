import { describe, expect, it } from 'vitest';
import { MAX_SCROLL, move, placeOf, scrollHeight, scrollTopOf, TOP } from './scroll.ts';
import { randomFrom } from './testing.ts';

const EXTENT = { total: 1000, height: 400, rowHeight: 20 };

describe('the place in a long list', () => {
  it('moves by pixels through rows of different heights, and back again', () => {
    const random = randomFrom(2);
    const heights = Array.from({ length: 1000 }, () => 20 * (1 + Math.floor(random() ** 2 * 4)));
    const heightOf = (row: number) => heights[row];
    let place = { row: 500, offset: 7 };
    for (let step = 0; step < 500; step++) {
      const pixels = Math.round((random() - 0.5) * 900);
      const there = move(place, pixels, EXTENT, heightOf);
      if (there.row > 0 && there.row < 999) expect(move(there, -pixels, EXTENT, heightOf)).toEqual(place);
      if (there.row > 50 && there.row < 950) place = there;
    }
  });

  it('ends at the first and the last row', () => {
    expect(move({ row: 2, offset: 0 }, -100, EXTENT, () => 20)).toEqual(TOP);
    expect(move({ row: 998, offset: 0 }, 1e6, EXTENT, () => 20).row).toBe(999);
  });

  it('stands at the scroll bar and comes back from there', () => {
    for (const total of [1000, 100_000, 5_000_000]) {
      const extent = { ...EXTENT, total };
      expect(scrollHeight(extent)).toBeLessThanOrEqual(MAX_SCROLL);
      for (const row of [0, 1, 57, Math.floor(total / 2), total - 20]) {
        const top = scrollTopOf({ row, offset: 5 }, extent);
        expect(Math.abs(placeOf(top, extent).row - row)).toBeLessThanOrEqual(1);
      }
      expect(placeOf(scrollHeight(extent) - extent.height, extent).row).toBe(total - 20);
    }
  });

  it('is the top where everything fits', () => {
    expect(placeOf(0, { ...EXTENT, total: 3 })).toEqual(TOP);
    expect(scrollTopOf({ row: 2, offset: 0 }, { ...EXTENT, total: 3 })).toBe(0);
  });
});
