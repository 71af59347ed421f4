import { expect, it } from 'vitest';
import { valueText } from './valueText.ts';

it('says values as people write them, and knows nothing from an empty text', () => {
  expect([null, undefined, '', 0, false, '0.10'].map(valueText)).toEqual([null, null, '', '0', 'false', '0.10']);
  expect(valueText({ name: 'ps', args: ['a', 'b'] })).toBe('name: ps\nargs:\n  - a\n  - b');
});
