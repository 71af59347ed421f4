/**
 * The text of a manifest is the model of its form: a value is read by its path, and written by replacing the part of
 * the text that says it. Comments, order, quotes, spaces and unknown fields stay as they are.
 */
import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  parseAllDocuments,
  Scalar,
  type Node,
  type Pair,
  type ParsedNode,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';

export type Step = string | number;
export type Path = readonly Step[];

/** More than this is not parsed in the page; the server refuses it too. */
export const MAX_TEXT = 1024 * 1024;

const PARSE = { keepSourceTokens: true, merge: true, uniqueKeys: true } as const;
const PRINT = { indent: 2, lineWidth: 0, minContentWidth: 0, nullStr: 'null' } as const;
/** Where new fields go among those that are there: in the order in which people write them. */
const ORDER = [
  ...['apiVersion', 'kind', 'metadata', 'name', 'namespace', 'labels', 'annotations', 'spec', 'enabled'],
  ...['source', 'input', 'output', 'hyperparameters', 'torchrunConfig', 'torchConfig', 'mpiConfig', 'config', 'elastic'],
  ...['tensorboardSpec', 'runMode', 'runPolicy', 'scheduler', 'successRules', 'failureRules', 'cleanUpPolicy', 'service'],
  ...['type', 'replicas', 'scalingWeight', 'restartPolicy', 'restartScope', 'replicaSpecs', 'worker', 'template'],
  ...['image', 'imagePullPolicy', 'workingDir', 'command', 'args', 'env', 'envFrom', 'ports', 'resources', 'limits'],
  ...['requests', 'cpu', 'memory', 'volumeMounts', 'mountPath', 'subPath', 'readOnly', 'containers', 'volumes'],
];

export interface Problem {
  message: string;
  from: number;
  to: number;
}

/** One document of a text. */
export class Part {
  private readonly doc: Document.Parsed;
  /** The whole value, with aliases and merge keys followed. */
  readonly value: unknown;

  constructor(doc: Document.Parsed) {
    this.doc = doc;
    this.value = doc.toJS({ maxAliasCount: 100 }) as unknown;
  }

  get from(): number {
    return this.doc.range[0];
  }

  get(path: Path): unknown {
    return valueAt(this.value, path);
  }

  get kind(): string {
    const kind = this.get(['kind']);
    return typeof kind === 'string' ? kind : '';
  }

  /** Where a path is written; its closest written ancestor where it is not. */
  range(path: Path): [number, number] {
    const { node, pair } = walk(this.doc, path);
    const key = pair?.key as ParsedNode | undefined;
    const range = (isScalar(node) ? node.range : undefined) ?? key?.range ?? node?.range ?? this.doc.range;
    return [range[0], range[1]];
  }

  /** Where a path that a fault names is written, or its closest written ancestor. */
  rangeOf(spelled: string): [number, number] {
    let best: Path = [];
    const visit = (node: AnyNode, path: Path) => {
      const here = spell(path);
      if (path.length > 0 && here !== spelled && !spelled.startsWith(`${here}.`) && !spelled.startsWith(`${here}[`)) return;
      best = path;
      if (isMap(node)) for (const item of node.items) if (isScalar(item.key)) visit(item.value as AnyNode, [...path, String(item.key.value)]);
      if (isSeq(node)) node.items.forEach((item, index) => visit(item as AnyNode, [...path, index]));
    };
    visit(this.doc.contents, []);
    return best.length === 0 ? [this.from, this.from] : this.range(best);
  }

  /** The text of this document alone. */
  source(text: string): string {
    return text.slice(this.doc.range[0], this.doc.range[2]);
  }

  /** The name of the anchor that a path takes its value from, if it is an alias. */
  aliasAt(path: Path): string {
    const { node, rest } = walk(this.doc, path);
    return isAlias(node) && rest.length === 0 ? node.source : '';
  }

  /** The name of the anchor of a path. */
  anchorAt(path: Path): string {
    const { node, rest } = walk(this.doc, path);
    return rest.length === 0 && node && !isAlias(node) ? ((node as { anchor?: string }).anchor ?? '') : '';
  }
}

export interface Parsed {
  parts: Part[];
  problems: Problem[];
}

/** Read a text; with problems it has no parts. */
export function parse(text: string): Parsed {
  if (text.length > MAX_TEXT) return { parts: [], problems: [{ message: 'too large', from: 0, to: 0 }] };
  const docs = documentsOf(text);
  const problems = docs.flatMap((doc) =>
    doc.errors.map((error) => ({ message: error.message, from: error.pos[0], to: error.pos[1] })),
  );
  if (problems.length > 0) return { parts: [], problems };
  try {
    return { parts: docs.map((doc) => new Part(doc)), problems };
  } catch (error) {
    return { parts: [], problems: [{ message: error instanceof Error ? error.message : String(error), from: 0, to: 0 }] };
  }
}

function documentsOf(text: string): Document.Parsed[] {
  const docs = parseAllDocuments(text, PARSE);
  return Array.isArray(docs) ? (docs as Document.Parsed[]).filter((doc) => doc.errors.length > 0 || !isNothing(doc.contents)) : [];
}

function isNothing(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

export function valueAt(value: unknown, path: Path): unknown {
  let here = value;
  for (const step of path) {
    if (here === null || typeof here !== 'object') return undefined;
    here = (here as Record<Step, unknown>)[step];
  }
  return here;
}

/** A path as faults write it: spec.replicaSpecs[0].type. */
export function spell(path: Path): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('').replace(/^\./, '');
}

/** The smallest change that makes one text of another. */
export function difference(old: string, text: string): { from: number; to: number; insert: string } {
  let from = 0;
  const most = Math.min(old.length, text.length);
  while (from < most && old[from] === text[from]) from++;
  let end = 0;
  while (end < most - from && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
  return { from, to: old.length - end, insert: text.slice(from, text.length - end) };
}

/** Return the text with a value written at a path; `undefined` removes it, with parents that this leaves empty. */
export function write(text: string, part: number, path: Path, value: unknown): string {
  const doc = documentsOf(text)[part];
  if (!doc || doc.errors.length > 0) return text;
  if (value === undefined) return new Writer(text, doc).remove(path);
  const old = valueAt(doc.toJS({ maxAliasCount: 100 }), path);
  if (same(old, value)) return text;
  if (Array.isArray(value) && Array.isArray(old) && old.length > 0 && value.length > 0) {
    return writeItems(text, part, path, old, value);
  }
  return new Writer(text, doc).set(path, value);
}

/** Write several values, one after the other. */
export function writeAll(text: string, part: number, changes: readonly (readonly [Path, unknown])[]): string {
  return changes.reduce((current, [path, value]) => write(current, part, path, value), text);
}

/** Change a list item by item, so that comments at the others stay. */
function writeItems(text: string, part: number, path: Path, old: unknown[], items: unknown[]): string {
  let current = text;
  for (let index = old.length - 1; index >= items.length; index--) current = write(current, part, [...path, index], undefined);
  items.forEach((item, index) => {
    current = write(current, part, [...path, index], item);
  });
  return current;
}

export function same(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every((name) => name in right && same((left as never)[name], (right as never)[name]));
}

type AnyNode = Node | null | undefined;

interface Walked {
  /** The deepest node that is written, and the steps that are not. */
  node: AnyNode;
  rest: Path;
  /** The pair that the node is the value of. */
  pair: Pair | undefined;
  parents: (YAMLMap | YAMLSeq)[];
}

function walk(doc: Document.Parsed, path: Path): Walked {
  let node: AnyNode = doc.contents;
  let pair: Pair | undefined;
  const parents: (YAMLMap | YAMLSeq)[] = [];
  for (const [index, step] of path.entries()) {
    const rest = path.slice(index);
    if (isMap(node)) {
      const found = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(step));
      if (!found) return { node, rest, pair, parents };
      parents.push(node);
      pair = found;
      node = found.value as AnyNode;
    } else if (isSeq(node) && typeof step === 'number' && step < node.items.length) {
      parents.push(node);
      pair = undefined;
      node = node.items[step] as AnyNode;
    } else return { node, rest, pair, parents };
  }
  return { node, rest: [], pair, parents };
}

class Writer {
  private readonly text: string;
  private readonly doc: Document.Parsed;

  constructor(text: string, doc: Document.Parsed) {
    this.text = text;
    this.doc = doc;
  }

  set(path: Path, value: unknown): string {
    const { node, rest, pair, parents } = walk(this.doc, path);
    if (isAlias(node)) return this.detach(path, rest, value);
    if (rest.length === 0) return this.replace(node, pair, parents, value);
    const [step, ...below] = rest as [Step, ...Step[]];
    const nested = nest(below, value);
    if (isMap(node) && typeof step === 'string') return this.addPair(node, step, nested, pair, parents);
    if (isSeq(node) && typeof step === 'number') return this.addItem(node, nested, pair, parents);
    return this.replace(node, pair, parents, nest(rest, value));
  }

  /** Write the value of an alias out, with a change in it. */
  private detach(path: Path, rest: Path, value: unknown): string {
    const at = path.slice(0, path.length - rest.length);
    const copy: unknown = structuredClone(valueAt(this.doc.toJS({ maxAliasCount: 100 }), at));
    const { node, pair, parents } = walk(this.doc, at);
    return this.replace(node, pair, parents, rest.length === 0 ? value : put(copy, rest, value));
  }

  remove(path: Path): string {
    const { node, rest, pair, parents } = walk(this.doc, path);
    if (rest.length > 0) {
      const isShared = isAlias(node) && valueAt(this.doc.toJS({ maxAliasCount: 100 }), path) !== undefined;
      return isShared ? this.detach(path, rest, undefined) : this.text;
    }
    const parent = parents.at(-1);
    if (!parent || path.length === 0) return this.text;
    const grandparent = parents.at(-2);
    // An entry of a list stays, however empty: it counts.
    if (parent.items.length === 1 && path.length > 1 && !(grandparent && isSeq(grandparent))) return this.remove(path.slice(0, -1));
    if (parent.items.length === 1) return this.splice(this.bounds(parent)[0], this.leafEnd(parent), isMap(parent) ? '{}' : '[]');
    const index = isMap(parent) ? parent.items.indexOf(pair as never) : (path.at(-1) as number);
    return isFlow(parent) ? this.removeFlow(parent, index) : this.removeBlock(parent, index);
  }

  private removeFlow(parent: YAMLMap | YAMLSeq, index: number): string {
    const [from, to] = this.itemBounds(parent, index);
    if (index + 1 < parent.items.length) return this.splice(from, this.itemBounds(parent, index + 1)[0], '');
    const [, before] = this.itemBounds(parent, index - 1);
    return this.splice(before, to, '');
  }

  private removeBlock(parent: YAMLMap | YAMLSeq, index: number): string {
    const [start, end] = this.itemBounds(parent, index);
    const from = isSeq(parent) ? this.dash(parent, index) : start;
    const lineStart = this.lineStart(from);
    const isFirstOnLine = this.text.slice(lineStart, from).trim() === '';
    const stop = this.nextLine(end);
    if (isFirstOnLine) return this.splice(lineStart, stop, '');
    // The first field of a list's entry stands behind its dash: the next one takes its place.
    const [next] = index + 1 < parent.items.length ? this.itemBounds(parent, index + 1) : [stop];
    return this.splice(from, next, '');
  }

  private replace(node: AnyNode, pair: Pair | undefined, parents: (YAMLMap | YAMLSeq)[], value: unknown): string {
    const inFlow = parents.some(isFlow);
    const indent = this.childIndent(parents);
    const isLeaf = value === null || typeof value !== 'object';
    if (!node) return this.text;
    const [from, to] = this.bounds(node);
    const isEmpty = from === to;
    if (isLeaf) {
      const written = printScalar(value, inFlow, isScalar(node) ? node : undefined, indent);
      if (isCollection(node) && !isFlow(node) && pair) return this.splice(this.afterColon(pair), this.leafEnd(node), ` ${written}`);
      const space = isEmpty && !/\s$/.test(this.text.slice(0, from)) ? ' ' : '';
      return this.splice(from, this.leafEnd(node), space + written);
    }
    if (inFlow || (isCollection(node) && isFlow(node) && Array.isArray(value) && isPlainList(value))) {
      return this.splice(from, to, printFlow(value));
    }
    if (isEmptyValue(value)) return this.splice(from, isCollection(node) ? this.leafEnd(node) : to, Array.isArray(value) ? '[]' : '{}');
    return this.replaceByBlock(node, pair, parents, printBlock(value), indent);
  }

  private replaceByBlock(node: Node, pair: Pair | undefined, parents: (YAMLMap | YAMLSeq)[], lines: string, indent: number): string {
    const end = this.leafEnd(node);
    const anchor = (node as { anchor?: string }).anchor;
    if (!pair) {
      const [from] = this.bounds(node);
      const column = parents.length === 0 ? 0 : from - this.lineStart(from);
      return this.splice(from, end, shift(lines, column).trimStart());
    }
    // A comment behind the old value would end up inside the new one: it goes to the line of the key.
    const start = this.afterColon(pair);
    const mark = anchor ? ` &${anchor}` : '';
    const comment = /^[ \t]+#[^\n]*/.exec(this.text.slice(end));
    const note = comment?.[0] ?? '';
    return this.splice(start, end + note.length, `${mark}${note}\n${shift(lines, indent)}`);
  }

  private addPair(map: YAMLMap, key: string, value: unknown, pair: Pair | undefined, parents: (YAMLMap | YAMLSeq)[]): string {
    const inFlow = parents.some(isFlow);
    if (map.items.length === 0) return inFlow ? this.splice(...this.bounds(map), printFlow({ [key]: value })) : this.replace(map, pair, parents, { [key]: value });
    if (isFlow(map)) {
      const [, end] = this.itemBounds(map, map.items.length - 1);
      return this.splice(end, end, `, ${printFlow({ [key]: value }).slice(1, -1).trim()}`);
    }
    const index = placeFor(map, key);
    const indent = indentOf(map);
    const lines = shift(printBlock({ [key]: value }), indent);
    if (index === 0) {
      const [first] = this.itemBounds(map, 0);
      return this.splice(first, first, `${lines.trimStart()}\n${' '.repeat(indent)}`);
    }
    const end = this.itemBounds(map, index - 1)[1];
    return this.insertAfter(end, lines);
  }

  private addItem(seq: YAMLSeq, value: unknown, pair: Pair | undefined, parents: (YAMLMap | YAMLSeq)[]): string {
    if (seq.items.length === 0) return this.replace(seq, pair, parents, [value]);
    if (isFlow(seq)) {
      const [, end] = this.itemBounds(seq, seq.items.length - 1);
      return this.splice(end, end, `, ${printFlow([value]).slice(1, -1).trim()}`);
    }
    const last = seq.items.length - 1;
    const dash = this.dash(seq, last);
    return this.insertAfter(this.itemBounds(seq, last)[1], shift(printBlock([value]), dash - this.lineStart(dash)));
  }

  /** Insert lines below the line in which something ends. */
  private insertAfter(end: number, lines: string): string {
    const at = this.lineEnd(end);
    return this.splice(at, at, `\n${lines}`);
  }

  private splice(from: number, to: number, insert: string): string {
    return this.text.slice(0, from) + insert + this.text.slice(to);
  }

  private bounds(node: Node): [number, number] {
    const [from, to] = node.range ?? [0, 0];
    // The last line break of a text in block style ends its line, as that of any other value.
    const isText = isScalar(node) && isBlockScalar(node);
    return [from, isText ? from + this.text.slice(from, to).trimEnd().length : to];
  }

  /** Where an entry of a collection begins, and where its last value ends. */
  private itemBounds(parent: YAMLMap | YAMLSeq, index: number): [number, number] {
    const item: unknown = parent.items[index];
    if (isPair(item)) {
      const key = item.key as Node;
      const value = item.value as AnyNode;
      const [from, keyEnd] = this.bounds(key);
      const end = value ? this.leafEnd(value) : keyEnd;
      return [from, end > keyEnd ? end : this.afterColon(item)];
    }
    const node = item as Node;
    return [this.bounds(node)[0], this.leafEnd(node)];
  }

  private leafEnd(node: Node): number {
    if (!isCollection(node) || isFlow(node) || node.items.length === 0) return this.bounds(node)[1];
    return this.itemBounds(node as YAMLMap | YAMLSeq, node.items.length - 1)[1];
  }

  private afterColon(pair: Pair): number {
    const [, end] = this.bounds(pair.key as Node);
    const colon = this.text.indexOf(':', end);
    return colon === -1 ? end : colon + 1;
  }

  private dash(seq: YAMLSeq, index: number): number {
    const token = (seq as { srcToken?: { items?: { start?: { type: string; offset: number }[] }[] } }).srcToken;
    const marks = token?.items?.filter((item) => item.start?.some((part) => part.type === 'seq-item-ind')) ?? [];
    const mark = marks[index]?.start?.find((part) => part.type === 'seq-item-ind');
    return mark ? mark.offset : this.bounds(seq.items[index] as Node)[0];
  }

  private lineStart(at: number): number {
    return this.text.lastIndexOf('\n', at - 1) + 1;
  }

  private lineEnd(at: number): number {
    const end = this.text.indexOf('\n', at);
    return end === -1 ? this.text.length : end;
  }

  private nextLine(at: number): number {
    const end = this.text.indexOf('\n', at);
    return end === -1 ? this.text.length : end + 1;
  }

  /** How far the fields of a new block below the innermost parent are indented. */
  private childIndent(parents: (YAMLMap | YAMLSeq)[]): number {
    const parent = parents.at(-1);
    return parent && !isFlow(parent) ? indentOf(parent) + 2 : 0;
  }
}

function nest(path: Path, value: unknown): unknown {
  return [...path].reverse().reduce<unknown>((inner, step) => (typeof step === 'number' ? [inner] : { [step]: inner }), value);
}

/** Set or remove a value inside plain data, and return the data. */
function put(data: unknown, path: Path, value: unknown): unknown {
  const [step, ...rest] = path as [Step, ...Step[]];
  const holder: Record<Step, unknown> | unknown[] =
    data !== null && typeof data === 'object' ? (data as Record<Step, unknown>) : typeof step === 'number' ? [] : {};
  const target = holder as Record<Step, unknown>;
  if (rest.length > 0) target[step] = put(target[step], rest, value);
  else if (value !== undefined) target[step] = value;
  else if (Array.isArray(holder)) holder.splice(step as number, 1);
  else delete target[step];
  return holder;
}

function placeFor(map: YAMLMap, key: string): number {
  const rank = ORDER.indexOf(key);
  if (rank === -1) return map.items.length;
  for (let index = map.items.length - 1; index >= 0; index--) {
    const item = map.items[index]!;
    const other = isScalar(item.key) ? ORDER.indexOf(String(item.key.value)) : -1;
    if (other !== -1 && other < rank) return index + 1;
  }
  return map.items.some((item) => isScalar(item.key) && ORDER.includes(String(item.key.value))) ? 0 : map.items.length;
}

function isFlow(node: YAMLMap | YAMLSeq): boolean {
  return node.flow === true;
}

function indentOf(node: YAMLMap | YAMLSeq): number {
  return (node as { srcToken?: { indent?: number } }).srcToken?.indent ?? 0;
}

function isBlockScalar(node: Scalar): boolean {
  return node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED;
}

function isEmptyValue(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function isPlainList(value: unknown[]): boolean {
  return value.every((item) => item === null || (typeof item !== 'object' && !String(item).includes('\n')));
}

function shift(lines: string, indent: number): string {
  const space = ' '.repeat(Math.max(indent, 0));
  return lines
    .split('\n')
    .map((line) => (line === '' ? line : space + line))
    .join('\n');
}

function newDocument(value: unknown): Document {
  return new Document(value, { compat: 'yaml-1.1', aliasDuplicateObjects: false });
}

export function printBlock(value: unknown): string {
  return newDocument(value).toString(PRINT).trimEnd();
}

function printFlow(value: unknown): string {
  return newDocument(value)
    .toString({ ...PRINT, collectionStyle: 'flow', flowCollectionPadding: false })
    .trim()
    .replace(/\n\s*/g, ' ');
}

function printScalar(value: unknown, inFlow: boolean, old: Scalar | undefined, indent: number): string {
  const isText = typeof value === 'string';
  if (isText && value.includes('\n') && !inFlow) {
    const [head, ...body] = newDocument({ k: literal(value) }).toString(PRINT).trimEnd().split('\n') as [string, ...string[]];
    return [head.slice('k: '.length), ...body.map((line) => shift(line, indent - PRINT.indent))].join('\n');
  }
  const scalar = new Scalar(value);
  if (isText && old?.value !== '' && (old?.type === Scalar.QUOTE_DOUBLE || old?.type === Scalar.QUOTE_SINGLE)) scalar.type = old.type;
  if (!inFlow) return newDocument(scalar).toString(PRINT).trimEnd();
  return printFlow([scalar]).slice(1, -1).trim();
}

function literal(text: string): Scalar {
  const scalar = new Scalar(text);
  scalar.type = Scalar.BLOCK_LITERAL;
  return scalar;
}
