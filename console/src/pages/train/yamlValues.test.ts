import { describe, expect, it } from 'vitest';
import { printValues, readValues } from './yamlValues.ts';

describe('values as YAML', () => {
  it('are read as they were printed', () => {
    const values = { worker: { number: 2, gpuCount: 0 }, hyperparams: { learningrate: '0.10' }, list: ['a', 'true'], empty: '' };
    expect(readValues(printValues(values))).toEqual({ values });
    expect(printValues({})).toBe('');
  });

  it('are none where nothing is written', () => {
    expect(readValues('')).toEqual({ values: {} });
    expect(readValues('# only words\n')).toEqual({ values: {} });
  });

  it('are refused with the place of the fault', () => {
    expect(readValues('worker:\n  number: [1\n')).toMatchObject({ problem: { line: 3 } });
    expect(readValues('a: 1\na: 2\n')).toMatchObject({ problem: { line: 2, column: 1, message: expect.stringContaining('unique') as string } });
  });

  it('are names and values, not a list or a word', () => {
    for (const text of ['- a\n', 'word\n', '3\n']) expect(readValues(text)).toEqual({ problem: { message: '', line: 1, column: 1 } });
  });

  it('do not grow without bound', () => {
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x, x]', ...[...'bcdefgh'].map((name, index) => `${name}: &${name} [${Array(10).fill(`*${'abcdefg'[index]}`).join(', ')}]`)].join('\n');
    expect(readValues(bomb)).toHaveProperty('problem');
  });
});
