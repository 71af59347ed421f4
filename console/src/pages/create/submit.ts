/** Creating the objects of a text: first a dry run of all of them, then the real thing, in their order. */
import { api, ApiError, asApiError } from '../../app/api.ts';
import { pathOf } from '../../app/router.tsx';
import type { Finding } from '../../forms/checks.ts';
import { parse, write, type Part } from '../../forms/document.ts';
import { formOf } from '../../forms/kinds.ts';

export interface Target {
  kind: string;
  namespace: string;
  name: string;
  /** Path of the collection in the Kubernetes API. */
  path: string;
}

/** A refusal: which object, and what was created before it. */
export class Refusal extends Error {
  constructor(
    readonly error: ApiError,
    readonly object: number,
    readonly created: Target[],
  ) {
    super(error.message);
    this.name = 'Refusal';
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Where an object is created; kinds without a form are looked up by their usual plural. */
export function targetOf(part: Part, namespace: string): Target {
  const kind = part.kind;
  const apiVersion = text(part.get(['apiVersion']));
  const own = text(part.get(['metadata', 'namespace'])) || namespace;
  const plural = formOf(kind)?.plural ?? `${kind.toLowerCase()}${kind.endsWith('s') ? 'es' : 's'}`;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return { kind, namespace: own, name: text(part.get(['metadata', 'name'])), path: `${root}${pathOf('namespaces', own, plural)}` };
}

/** The text with every job in it paused, and everything else asleep. */
export function pausedText(source: string): string {
  let current = source;
  parse(source).parts.forEach((part, index) => {
    const category = formOf(part.kind)?.category;
    if (category === 'job') current = write(current, index, ['spec', 'runMode', 'pause', 'enabled'], true);
    else if (category === 'workbench' || category === 'app') current = write(current, index, ['spec', 'suspend'], true);
  });
  return current;
}

const YAML = 'application/yaml';

/** Create everything; throws a Refusal. */
export async function createAll(source: string, namespace: string): Promise<Target[]> {
  const { parts } = parse(source);
  const targets = parts.map((part) => targetOf(part, namespace));
  const claims = new Set(targets.filter((target) => target.kind === 'PersistentVolumeClaim').map((target) => target.name));
  const send = async (index: number, dry: boolean) => {
    const query = `fieldValidation=Strict&fieldManager=paceline-console${dry ? '&dryRun=All' : ''}`;
    await api.post(`/k8s${targets[index]!.path}?${query}`, parts[index]!.source(source), { type: YAML });
  };
  for (const index of parts.keys()) {
    try {
      await send(index, true);
    } catch (failure) {
      const error = asApiError(failure);
      if (!waitsForClaims(error, parts[index]!, claims)) throw new Refusal(error, index, []);
    }
  }
  const created: Target[] = [];
  for (const index of parts.keys()) {
    try {
      await send(index, false);
    } catch (failure) {
      throw new Refusal(asApiError(failure), index, created);
    }
    created.push(targets[index]!);
  }
  return created;
}

/** Whether a job lacks only claims that the same text creates before it. */
function waitsForClaims(error: ApiError, part: Part, claims: ReadonlySet<string>): boolean {
  const causes = error.details?.causes ?? [];
  if (error.code !== 422 || causes.length === 0) return false;
  const names = JSON.stringify(part.value);
  return causes.every((cause) => cause.reason === 'FieldValueNotFound' && [...claims].some((name) => (cause.message ?? '').includes(name) && names.includes(name)));
}

/** The causes of a refusal as findings at their lines. */
export function findingsOf(refusal: Refusal, source: string): Finding[] {
  const part = parse(source).parts[refusal.object];
  if (!part) return [];
  return (refusal.error.details?.causes ?? []).map((cause) => {
    const path = cause.field ?? '';
    const [from, to] = part.rangeOf(path);
    const before = source.slice(0, from).split('\n');
    const column = before.at(-1)!.length + 1;
    const line = before.length;
    const width = Math.min(to - from, source.slice(from).search(/\n|$/));
    const span = { line, column, endLine: line, endColumn: column + width };
    return { severity: 'error', object: refusal.object, path, reason: cause.reason ?? '', message: cause.message ?? refusal.error.message, span, fix: null };
  });
}

/** The page that shows what was created. */
export function pageOf(target: Target): string {
  switch (formOf(target.kind)?.category) {
    case 'job':
      return pathOf('jobs', target.namespace, target.kind, target.name, 'summary');
    case 'app':
      return pathOf('apps', target.namespace, target.name);
    case 'workbench':
      return pathOf(formOf(target.kind)!.plural, target.namespace, target.name);
    default:
      return '/jobs';
  }
}
