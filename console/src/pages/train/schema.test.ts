import { describe, expect, it } from 'vitest';
import type { Schema } from '../../forms/schema.ts';
import { getAt, groupsOf, isChanged, leavesOf, setAt, textOf, valueOf, type Leaf } from './schema.ts';

const SCHEMA: Schema = {
  type: 'object',
  properties: {
    worker: { type: 'object', properties: { number: { type: 'integer', minimum: 1 }, env: { type: 'object', additionalProperties: { type: 'string' } } } },
    command: { type: 'array', items: { type: 'string' } },
    rate: { anyOf: [{ type: 'number' }, { type: 'string' }], description: 'Learning rate.' },
  },
};
const DEFAULTS = { worker: { number: 2, env: {} }, command: [], rate: 0.001 };

describe('the values of a template', () => {
  const leaves = leavesOf(SCHEMA, DEFAULTS);
  const named = (path: string) => leaves.find((leaf) => leaf.path.join('.') === path) as Leaf;

  it('are a flat list with their defaults', () => {
    expect(leaves.map((leaf) => [leaf.path.join('.'), leaf.shape, leaf.initial])).toEqual([
      ['worker.number', 'integer', 2],
      ['worker.env', 'map', {}],
      ['command', 'list', []],
      ['rate', 'textOrNumber', 0.001],
    ]);
    expect(groupsOf(leaves).map((group) => [group.name, group.leaves.length])).toEqual([
      ['', 2],
      ['worker', 2],
    ]);
  });

  it('that nobody changed are not written', () => {
    const changed = setAt(setAt({}, ['worker', 'number'], 3), ['rate'], '0.10');
    expect(changed).toEqual({ worker: { number: 3 }, rate: '0.10' });
    expect(setAt(changed, ['worker', 'number'], undefined)).toEqual({ rate: '0.10' });
  });

  it('keep their order and what the schema does not know', () => {
    const tree = { b: 1, a: { x: 1 }, c: 2 };
    expect(JSON.stringify(setAt(tree, ['a', 'y'], 2))).toBe('{"b":1,"a":{"x":1,"y":2},"c":2}');
    expect(getAt(tree, ['a', 'x'])).toBe(1);
    expect(getAt(tree, ['constructor'])).toBeUndefined();
  });

  it('are read from text', () => {
    expect(valueOf('A=1\n\nB = x=y', named('worker.env'))).toEqual({ A: '1', B: 'x=y' });
    expect(valueOf('python3\ntrain.py', named('command'))).toEqual(['python3', 'train.py']);
    expect(valueOf('', named('command'))).toBeUndefined();
    expect(valueOf('0.10', named('rate'))).toBe('0.10');
    expect(textOf({ A: '1', B: 2 })).toBe('A=1\nB=2');
  });

  it('differ or not, as people see it', () => {
    expect(isChanged('2', named('worker.number'))).toBe(false);
    expect(isChanged(3, named('worker.number'))).toBe(true);
    expect(isChanged(undefined, named('worker.number'))).toBe(false);
  });
});
