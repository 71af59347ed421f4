import { expect, test } from 'vitest';
import { contrast, palettes, replicaColours, type ThemeName } from './tokens.ts';

const themes = Object.keys(palettes) as ThemeName[];

test('contrast is that of WCAG', () => {
  expect(contrast('#000000', '#FFFFFF')).toBeCloseTo(21, 5);
  expect(contrast('#777777', '#FFFFFF')).toBeCloseTo(4.48, 2);
});

test.each(themes)('every text of the %s theme can be read on every surface', (theme) => {
  const { canvas, surface, raised, sunken, brandSoft, ink, inkSoft, inkFaint, brand, onBrand, tones } = palettes[theme];
  const surfaces = { canvas, surface, raised, sunken };
  const texts = { ink, inkSoft, inkFaint, brand };
  const pairs: [string, string, string][] = [
    ['brand on brandSoft', brand, brandSoft],
    ['inkFaint on brandSoft', inkFaint, brandSoft],
    ['onBrand on brand', onBrand, brand],
  ];
  for (const [name, text] of Object.entries(texts))
    for (const [place, colour] of Object.entries(surfaces)) pairs.push([`${name} on ${place}`, text, colour]);
  for (const [tone, { text, soft }] of Object.entries(tones)) {
    pairs.push([`${tone} on its own tint`, text, soft]);
    for (const [place, colour] of Object.entries(surfaces)) pairs.push([`${tone} on ${place}`, text, colour]);
  }
  for (const [index, colour] of replicaColours[theme].entries())
    for (const [place, back] of Object.entries(surfaces)) pairs.push([`replica ${index} on ${place}`, colour, back]);

  const weak = pairs.map(([name, text, back]) => [name, contrast(text, back)] as const).filter(([, value]) => value < 4.5);
  expect(weak).toEqual([]);
});
