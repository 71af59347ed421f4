/** The schema of a kind as a tree of fields, for the part of the form that shows everything. */
import type { Path } from './document.ts';

export interface Schema {
  type?: string;
  format?: string;
  description?: string;
  enum?: string[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  default?: unknown;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  allOf?: Schema[];
  $ref?: string;
  [extension: string]: unknown;
}

export interface KindSchema {
  kind: string;
  apiVersion: string;
  schema: Schema;
  components: Record<string, Schema>;
}

const REF = '#/components/schemas/';
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';

export type Shape = 'object' | 'list' | 'map' | 'text' | 'number' | 'integer' | 'switch' | 'choice' | 'quantity' | 'textOrNumber' | 'free';

/** A schema with its reference followed; what is said beside the reference wins. */
export function resolve(schema: Schema, components: Record<string, Schema>): Schema {
  const ref = schema.$ref ?? schema.allOf?.find((part) => part.$ref !== undefined)?.$ref;
  if (ref === undefined) return schema;
  const name = ref.slice(REF.length);
  if (name === QUANTITY) return { ...schema, type: 'string', format: 'quantity' };
  const { $ref: _ref, allOf: _all, ...own } = schema;
  return { ...resolve(components[name] ?? {}, components), ...own };
}

export function shapeOf(schema: Schema): Shape {
  if (schema.enum) return 'choice';
  if (schema.format === 'quantity') return 'quantity';
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string' || schema.anyOf) return 'textOrNumber';
  if (schema.properties) return 'object';
  if (schema.items) return 'list';
  if (typeof schema.additionalProperties === 'object') return 'map';
  switch (schema.type) {
    case 'string':
      return 'text';
    case 'integer':
      return 'integer';
    case 'number':
      return 'number';
    case 'boolean':
      return 'switch';
    default:
      return 'free';
  }
}

/** The schema of a path below another one; `undefined` where there is none. */
export function schemaAt(root: Schema, path: Path, components: Record<string, Schema>): Schema | undefined {
  let here: Schema | undefined = resolve(root, components);
  for (const step of path) {
    if (here === undefined) return undefined;
    const inner: Schema | undefined =
      typeof step === 'number' ? here.items : (here.properties?.[step] ?? (typeof here.additionalProperties === 'object' ? here.additionalProperties : undefined));
    here = inner && resolve(inner, components);
  }
  return here;
}

/** What a new entry of a list or a new object begins with. */
export function emptyOf(schema: Schema): unknown {
  switch (shapeOf(schema)) {
    case 'object':
    case 'map':
    case 'free':
      return {};
    case 'list':
      return [];
    case 'switch':
      return false;
    case 'number':
    case 'integer':
      return schema.minimum ?? 0;
    case 'choice':
      return schema.enum?.[0] ?? '';
    default:
      return '';
  }
}

/** Fields whose names or help texts contain words, as paths without numbers; recursive schemas are cut off. */
export function findFields(root: Schema, components: Record<string, Schema>, words: string, most = 60): { path: string[]; schema: Schema }[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const result: { path: string[]; schema: Schema }[] = [];
  const visit = (schema: Schema, path: string[], trail: readonly string[]) => {
    const ref = schema.$ref ?? schema.allOf?.[0]?.$ref ?? schema.items?.$ref ?? schema.items?.allOf?.[0]?.$ref ?? '';
    if (result.length >= most || path.length > 12 || (ref !== '' && trail.includes(ref))) return;
    const resolved = resolve(schema, components);
    const below = resolved.items ? resolve(resolved.items, components) : resolved;
    const text = `${path.at(-1) ?? ''} ${resolved.description ?? ''}`.toLowerCase();
    if (path.length > 0 && wanted.every((word) => text.includes(word))) result.push({ path, schema: resolved });
    for (const [name, field] of Object.entries(below.properties ?? {})) visit(field, [...path, name], ref === '' ? trail : [...trail, ref]);
  };
  if (wanted.length > 0) visit(root, [], []);
  return result;
}
