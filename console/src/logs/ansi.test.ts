import { describe, expect, it } from 'vitest';
import { segmentsOf, showLine, statesOf, withHits } from './ansi.ts';
import { randomFrom } from './testing.ts';

const textOf = (line: string, limit = 1000) => showLine(line, limit).segments.map((segment) => segment.text).join('');

describe('a line that is shown', () => {
  it('has its colours as classes', () => {
    expect(segmentsOf('a\x1b[1;31mb\x1b[0mc\x1b[38;5;196md\x1b[48;2;0;0;255me\x1b[mf')).toEqual([
      { text: 'a', style: '' },
      { text: 'b', style: 'log-bold log-fg-red' },
      { text: 'c', style: '' },
      { text: 'd', style: 'log-fg-bright-red' },
      { text: 'e', style: 'log-fg-bright-red log-bg-bright-blue' },
      { text: 'f', style: '' },
    ]);
  });

  it.each([
    ['bell\x07', 'bell^G'],
    ['\x1b[2Kclear', '^[[2Kclear'],
    ['\x1b]0;title\x07x', '^[]0;title^Gx'],
    ['a\u0085b\u009b31m', 'a<U+0085>b<U+009B>31m'],
    ['\u202eevil\u202c', '<U+202E>evil<U+202C>'],
    ['\u2066x\u2069\u200f\u061c', '<U+2066>x<U+2069><U+200F><U+061C>'],
    ['a\u200bb\ufeff\u2028', 'a<U+200B>b<U+FEFF><U+2028>'],
    ['\u{e0041}', '<U+E0041>'],
    ['tab\tstays', 'tab\tstays'],
    ['\x7f\x00', '^?^@'],
    ['日志 🚀 é', '日志 🚀 é'],
    ['\x1b[31', '^[[31'],
    ['\x1b[31mred\x1b[999mon', 'redon'],
  ])('%j reads %j', (line, shown) => expect(textOf(line)).toBe(shown));

  it('never holds a control or bidi character, whatever bytes come', () => {
    const random = randomFrom(5);
    for (let round = 0; round < 400; round++) {
      const bytes = Uint8Array.from({ length: 200 }, () => (random() < 0.3 ? [27, 91, 59, 109, 49, 13][Math.floor(random() * 6)]! : Math.floor(random() * 256)));
      const text = textOf(new TextDecoder().decode(bytes));
      expect(text).not.toMatch(/[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
    }
  });

  it('is the last state of a progress bar, with the number of those before it', () => {
    expect(showLine('10%\r20%\r100%', 100)).toMatchObject({ segments: [{ text: '100%' }], earlier: 2 });
    expect(showLine('done\r', 100)).toMatchObject({ segments: [{ text: 'done' }], earlier: 0 });
    expect(showLine('\r\r', 100)).toMatchObject({ segments: [], earlier: 0 });
    expect(statesOf('\ra\r\rb')).toEqual(['a', 'b']);
    expect(showLine('\x1b[32m10%\r20%', 100).segments).toEqual([{ text: '20%', style: 'log-fg-green' }]);
  });

  it('is cut where it is too long, and never within a character', () => {
    expect(showLine('abcdef', 4)).toMatchObject({ segments: [{ text: 'abcd' }], hidden: 2 });
    expect(textOf('abc🚀d', 4)).toBe('abc');
  });

  it('marks what a search found, across colours', () => {
    const segments = [{ text: 'lo', style: 'log-fg-red' }, { text: 'ss 0.1', style: '' }];
    expect(withHits(segments, () => [1, 3, 5, 6])).toEqual([
      { text: 'l', style: 'log-fg-red' },
      { text: 'o', style: 'log-fg-red log-hit' },
      { text: 's', style: 'log-hit' },
      { text: 's ', style: '' },
      { text: '0', style: 'log-hit' },
      { text: '.1', style: '' },
    ]);
  });
});
