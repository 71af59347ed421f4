/** The values of any template as a flat list of fields, from the template's schema; and a sparse tree of what differs. */
import { shapeOf, type Schema, type Shape } from '../../forms/schema.ts';

export interface Leaf {
  path: string[];
  schema: Schema;
  shape: Shape;
  /** What holds if nobody says otherwise; `undefined` if nothing does. */
  initial: unknown;
  help: string;
}

export type Tree = Record<string, unknown>;

/** Every single value of a template, in the order of its schema. */
export function leavesOf(schema: Schema, defaults: unknown, path: string[] = []): Leaf[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const place = [...path, name];
    const initial = isTree(defaults) ? defaults[name] : undefined;
    if (field.properties) return leavesOf(field, initial, place);
    return [{ path: place, schema: field, shape: shapeOf(field), initial, help: field.description ?? '' }];
  });
}

/** Fields by the object they are in: single values first, then each object of the top level. */
export function groupsOf(leaves: readonly Leaf[]): { name: string; leaves: Leaf[] }[] {
  const groups = new Map<string, Leaf[]>();
  for (const leaf of leaves) {
    const name = leaf.path.length > 1 ? leaf.path[0]! : '';
    groups.set(name, [...(groups.get(name) ?? []), leaf]);
  }
  return [...groups.entries()].map(([name, members]) => ({ name, leaves: members })).sort((left, right) => Number(left.name !== '') - Number(right.name !== ''));
}

export function isTree(value: unknown): value is Tree {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

export function getAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((here, name) => (isTree(here) && Object.hasOwn(here, name) ? here[name] : undefined), tree);
}

/** A tree with another value at a path; `undefined` removes it, and objects that become empty. */
export function setAt(tree: Tree, path: readonly string[], value: unknown): Tree {
  const [name, ...rest] = path;
  if (name === undefined) return tree;
  const { [name]: before, ...others } = tree;
  const after = rest.length === 0 ? value : setAt(isTree(before) ? before : {}, rest, value);
  const isGone = after === undefined || (rest.length > 0 && isTree(after) && Object.keys(after).length === 0);
  if (isGone) return others;
  return name in tree ? Object.fromEntries(Object.entries(tree).map(([key, old]) => [key, key === name ? after : old])) : { ...tree, [name]: after };
}

/** A value as text for a control; lists and maps one entry a line. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry))).join('\n');
  if (isTree(value)) return Object.entries(value).map(([name, entry]) => `${name}=${typeof entry === 'string' ? entry : JSON.stringify(entry)}`).join('\n');
  return String(value);
}

/** What a text means for a field; `undefined` sets it back to its default. */
export function valueOf(text: string, leaf: Leaf): unknown {
  if (leaf.shape === 'list') return text === '' ? undefined : text.split('\n');
  if (leaf.shape === 'map') {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    if (lines.length === 0) return undefined;
    return Object.fromEntries(lines.map((line) => [line.split('=')[0]!.trim(), line.includes('=') ? line.slice(line.indexOf('=') + 1).trim() : '']));
  }
  // A number stays a text, so that no digit is lost: 0.10 is not 0.1.
  return text === '' && textOf(leaf.initial) === '' ? undefined : text;
}

/** Whether a value differs from the default; numbers and their texts are the same. */
export function isChanged(value: unknown, leaf: Leaf): boolean {
  return value !== undefined && textOf(value) !== textOf(leaf.initial);
}
