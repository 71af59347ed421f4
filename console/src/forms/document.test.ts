import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlias, isCollection, isMap, isPair, isScalar, isSeq, parseAllDocuments, parseDocument, type Node } from 'yaml';
import { describe, expect, it } from 'vitest';
import { difference, parse, same, spell, write, writeAll, type Path } from './document.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..', 'examples');
const EXAMPLES = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const);

const SEED = `# A job of the tutorial.
apiVersion: batch.tensorstack.dev/v1beta1
kind: TensorFlowTrainingJob   # the kind
metadata:
  name: mnist
spec:
  # TensorBoard
  tensorboardSpec:
    trainingLogFilesets:
      - t9k://pvc/mnist/log      # where logs are
    image: "tensorflow/tensorflow:2.14.0"
  unknownField: {x: 1}
  replicaSpecs:
    - type: worker
      replicas: 4                # workers
      template:
        spec:
          containers:
            - image: tensorflow/tensorflow:2.14.0
              name: tensorflow
              command:
                - sh
                - '-c'
                - >-
                  python train.py
                  --no_cuda
              env: []
              resources:
                limits: {cpu: '4', memory: 2Gi}

          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: mnist
`;
const CONTAINER: Path = ['spec', 'replicaSpecs', 0, 'template', 'spec', 'containers', 0];

/** Paths of all nodes, by what they are; aliases are not entered. */
function nodes(text: string): { path: Path; node: Node }[] {
  const result: { path: Path; node: Node }[] = [];
  const visit = (node: unknown, path: Path) => {
    if (node) result.push({ path, node: node as Node });
    if (isMap(node)) for (const item of node.items) if (isPair(item) && isScalar(item.key)) visit(item.value, [...path, String(item.key.value)]);
    if (isSeq(node)) node.items.forEach((item, index) => visit(item, [...path, index]));
  };
  visit(parseDocument(text).contents, []);
  return result;
}

function comments(text: string): string[] {
  return text.match(/(^|\s)#[^\n]*/g) ?? [];
}

function changedLines(old: string, text: string): number {
  const left = old.split('\n');
  const right = text.split('\n');
  return left.length === right.length ? left.filter((line, index) => line !== right[index]).length : -1;
}

function data(text: string): unknown {
  return parseAllDocuments(text).map((doc) => (doc as ReturnType<typeof parseDocument>).toJS() as unknown);
}

describe('every example', () => {
  it('there are examples', () => expect(EXAMPLES.length).toBeGreaterThan(20));

  it.each(EXAMPLES)('%s is read, and reading changes nothing', (_file, text) => {
    const { parts, problems } = parse(text);
    expect(problems).toEqual([]);
    expect(parts).toHaveLength(1);
    expect(parts[0]!.kind).not.toBe('');
  });

  it.each(EXAMPLES)('%s: a single value changes in its own line only', (_file, text) => {
    for (const { path, node } of nodes(text)) {
      if (!isScalar(node) || path.length === 0) continue;
      const value = typeof node.value === 'number' ? node.value + 1 : typeof node.value === 'boolean' ? !node.value : 'changed: "value", [1]';
      const written = write(text, 0, path, value);
      const expected = parseDocument(text);
      expected.setIn(path, value);
      expect(data(written), spell(path)).toEqual([expected.toJS()]);
      expect(comments(written)).toEqual(comments(text));
      if (node.type !== 'BLOCK_LITERAL' && node.type !== 'BLOCK_FOLDED') expect(changedLines(text, written), spell(path)).toBe(1);
      expect(write(written, 0, path, node.value), spell(path)).toBe(restored(text, written, path, node.value));
    }
  });

  it.each(EXAMPLES)('%s: a field can be added to every object, and removed again', (_file, text) => {
    for (const { path, node } of nodes(text)) {
      if (!isMap(node)) continue;
      for (const value of ['text', 3, true, ['a', 'b c'], { a: { b: ['x'] } }, 'two\nlines\n']) {
        const written = write(text, 0, [...path, 'zzz'], value);
        const expected = parseDocument(text);
        expected.setIn([...path, 'zzz'], value);
        expect(data(written), `${spell(path)} ${JSON.stringify(value)}\n${written}`).toEqual([expected.toJS()]);
        expect(comments(written)).toEqual(comments(text));
        expect(write(written, 0, [...path, 'zzz'], undefined), spell(path)).toBe(text);
      }
    }
  });

  it.each(EXAMPLES)('%s: an entry can be added to every list, and removed again', (_file, text) => {
    for (const { path, node } of nodes(text)) {
      if (!isSeq(node)) continue;
      for (const value of ['text', 3, { name: 'x', deep: { list: [1] } }]) {
        const at = [...path, node.items.length];
        const written = write(text, 0, at, value);
        const expected = parseDocument(text);
        expected.addIn(path, value);
        expect(data(written), `${spell(path)}\n${written}`).toEqual([expected.toJS()]);
        expect(write(written, 0, at, undefined)).toBe(text);
      }
    }
  });

  it.each(EXAMPLES)('%s: every field and entry can be removed', (_file, text) => {
    for (const { path, node } of nodes(text)) {
      if (path.length < 2) continue;
      const isShared = !isAlias(node) && text.includes('&');
      const written = write(text, 0, path, undefined);
      if (isShared && parse(written).problems.length > 0) continue;
      const expected = parseDocument(text);
      expected.deleteIn(path);
      let parent = path.slice(0, -1);
      while (parent.length > 0) {
        const holder = expected.getIn(parent);
        if (!isCollection(holder) || holder.items.length > 0 || typeof parent.at(-1) === 'number') break;
        expected.deleteIn(parent);
        parent = parent.slice(0, -1);
      }
      expect(data(written), `${spell(path)}\n${written}`).toEqual([expected.toJS()]);
    }
  });

  it.each(EXAMPLES)('%s: every object can be replaced by another one', (_file, text) => {
    for (const { path, node } of nodes(text)) {
      if (path.length === 0 || isAlias(node) || text.includes('&')) continue;
      for (const value of [{ a: [{ b: 1 }] }, [{ a: 1, b: 2 }], 'text']) {
        const written = write(text, 0, path, value);
        const expected = parseDocument(text);
        expected.setIn(path, value);
        expect(data(written), `${spell(path)} ${JSON.stringify(value)}\n${written}`).toEqual([expected.toJS()]);
      }
    }
  });
});

/** Writing the old value back gives the old text, but for the style of quotes and blocks. */
function restored(text: string, written: string, path: Path, value: unknown): string {
  const back = write(written, 0, path, value);
  expect(data(back)).toEqual(data(text));
  return back;
}

describe('writing', () => {
  it('keeps comments, order, quotes, spaces and unknown fields', () => {
    const text = writeAll(SEED, 0, [
      [['metadata', 'name'], 'other'],
      [['spec', 'replicaSpecs', 0, 'replicas'], 8],
      [['spec', 'tensorboardSpec', 'image'], 'tensorboard:1'],
      [[...CONTAINER, 'resources', 'limits', 'cpu'], '8'],
      [[...CONTAINER, 'resources', 'limits', 'memory'], '16Gi'],
    ]);
    expect(text).toBe(
      SEED.replace('name: mnist\n', 'name: other\n')
        .replace('replicas: 4  ', 'replicas: 8  ')
        .replace('"tensorflow/tensorflow:2.14.0"', '"tensorboard:1"')
        .replace("cpu: '4', memory: 2Gi", "cpu: '8', memory: 16Gi"),
    );
  });

  it('adds an environment variable to an empty list', () => {
    expect(write(SEED, 0, [...CONTAINER, 'env', 0], { name: 'A', value: '1' })).toBe(
      SEED.replace('              env: []\n', '              env:\n                - name: A\n                  value: "1"\n'),
    );
  });

  it('puts a new field where people look for it', () => {
    const text = write(SEED, 0, [...CONTAINER, 'workingDir'], '/mnt');
    expect(text).toBe(SEED.replace('              name: tensorflow\n', '              name: tensorflow\n              workingDir: /mnt\n'));
    expect(write(SEED, 0, ['metadata', 'namespace'], 'team')).toContain('  name: mnist\n  namespace: team\nspec:');
  });

  it('creates the objects above a new field', () => {
    const text = write(SEED, 0, ['spec', 'scheduler', 't9kScheduler', 'queue'], 'high');
    expect(text).toContain('  scheduler:\n    t9kScheduler:\n      queue: high\n');
    expect(write(text, 0, ['spec', 'scheduler', 't9kScheduler', 'queue'], undefined)).toBe(SEED);
  });

  it('replaces a folded text by a line and a line by a text', () => {
    const path = [...CONTAINER, 'command', 2];
    const text = write(SEED, 0, path, 'python other.py');
    expect(text).toContain("                - '-c'\n                - python other.py\n              env: []");
    expect(parse(write(text, 0, path, 'one\n  two\n')).parts[0]!.get(path)).toBe('one\n  two\n');
  });

  it('gives a field without a value one', () => {
    expect(write('metadata:\n  name:\nspec: {}\n', 0, ['metadata', 'name'], 'x')).toBe('metadata:\n  name: x\nspec: {}\n');
    expect(write('metadata:\nspec: 1\n', 0, ['metadata', 'name'], 'x')).toBe('metadata:\n  name: x\nspec: 1\n');
    expect(write('metadata: {}\n', 0, ['metadata', 'name'], 'x')).toBe('metadata:\n  name: x\n');
    expect(write('metadata: {} # note\n', 0, ['metadata', 'name'], 'x')).toBe('metadata: # note\n  name: x\n');
  });

  it.each(['yes', 'on', 'n', '1', '1e3', 'null', '~', 'a: b', '- x', '# no', ' space ', '', '{', '*a', '!x', '0x1f', '1:30'])(
    'writes %j so that it is read as text',
    (value) => {
      const text = write('a: {b: x}\nc: y\n', 0, ['a', 'b'], value);
      const both = write(text, 0, ['c'], value);
      expect(data(both)).toEqual([{ a: { b: value }, c: value }]);
      expect(parseDocument(both, { version: '1.1' }).toJS()).toEqual({ a: { b: value }, c: value });
    },
  );

  it('changes a list item by item, so that the comments of others stay', () => {
    const text = 'args:\n  - train.py # the script\n  - --lr # rate\n  - "1"\n';
    expect(write(text, 0, ['args'], ['train.py', '--lr', '2', '--more'])).toBe(
      'args:\n  - train.py # the script\n  - --lr # rate\n  - "2"\n  - --more\n',
    );
    expect(write(text, 0, ['args'], ['train.py'])).toBe('args:\n  - train.py # the script\n');
    expect(write('args: [a, b]\n', 0, ['args'], ['a', 'c d', 'e'])).toBe('args: [a, c d, e]\n');
  });

  it('writes out a shared template before it changes, so that the other one stays', () => {
    const text = 'a: &shared\n  x: 1\n  y: [2]\nb: *shared\n';
    expect(data(write(text, 0, ['b', 'x'], 5))).toEqual([{ a: { x: 1, y: [2] }, b: { x: 5, y: [2] } }]);
    expect(data(write(text, 0, ['b', 'y'], undefined))).toEqual([{ a: { x: 1, y: [2] }, b: { x: 1 } }]);
    const { parts } = parse(text);
    expect([parts[0]!.aliasAt(['b']), parts[0]!.anchorAt(['a']), parts[0]!.aliasAt(['a'])]).toEqual(['shared', 'shared', '']);
  });

  it('changes one of several documents', () => {
    const text = '# first\na: 1\n---\na: 1\n---\n# nothing\n---\na: 1\n';
    expect(write(text, 1, ['a'], 2)).toBe('# first\na: 1\n---\na: 2\n---\n# nothing\n---\na: 1\n');
    expect(write(text, 2, ['b'], 2)).toBe(`${text}b: 2\n`);
  });

  it('gives each document with its own text', () => {
    const text = 'a: 1\n---\n# second\nb: 2\n';
    expect(parse(text).parts.map((part) => parseDocument(part.source(text)).toJS() as unknown)).toEqual([{ a: 1 }, { b: 2 }]);
  });

  it('works on text without a newline at its end', () => {
    expect(write('a:\n  b: 1', 0, ['a', 'c'], 2)).toBe('a:\n  b: 1\n  c: 2');
    expect(write('a:\n  - b', 0, ['a', 1], 'c')).toBe('a:\n  - b\n  - c');
  });

  it('leaves text alone that it cannot read', () => {
    expect(write('a: [1\n', 0, ['a'], 2)).toBe('a: [1\n');
    expect(parse('a: [1\n').problems).not.toEqual([]);
    expect(parse('a: 1\na: 2\n').problems).not.toEqual([]);
    expect(parse('x'.repeat(2_000_000)).parts).toEqual([]);
  });

  it('refuses a bomb of aliases', () => {
    const names = 'abcdefghi'.split('');
    const lines = names.map((name, index) => `${name}: &${name} [${Array(9).fill(index ? `*${names[index - 1]}` : 'x').join(', ')}]`);
    expect(parse(lines.join('\n')).parts).toEqual([]);
  });
});

describe('small things', () => {
  it('finds the smallest difference of two texts', () => {
    expect(difference('abc', 'abXc')).toEqual({ from: 2, to: 2, insert: 'X' });
    expect(difference('aaa', 'aa')).toEqual({ from: 2, to: 3, insert: '' });
    expect(difference('same', 'same')).toEqual({ from: 4, to: 4, insert: '' });
  });

  it('spells paths as faults do', () => {
    expect(spell(['spec', 'replicaSpecs', 0, 'limits', 'nvidia.com/gpu'])).toBe('spec.replicaSpecs[0].limits.nvidia.com/gpu');
  });

  it('compares data', () => {
    expect(same({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toBe(true);
    expect(same({ a: 1 }, { b: 1 })).toBe(false);
    expect(same([], {})).toBe(false);
  });

  it('finds where a path is written', () => {
    const { parts } = parse(SEED);
    const marked = (path: Path) => SEED.slice(...parts[0]!.range(path));
    expect(marked(['metadata', 'name'])).toBe('mnist');
    expect(marked(['spec', 'replicaSpecs', 0, 'template'])).toBe('template');
    expect(marked(['metadata', 'labels', 'app'])).toBe('metadata');
    expect(SEED.slice(...parts[0]!.rangeOf('spec.replicaSpecs[0].replicas'))).toBe('4');
    expect(SEED.slice(...parts[0]!.rangeOf('spec.replicaSpecs[0].template.spec.containers[0].resources.limits.nvidia.com/gpu'))).toBe('limits');
    expect(SEED.slice(...parts[0]!.rangeOf('nothing'))).toBe('');
  });
});
