/** Actions on jobs: what the server plans, says and does. Mirrors presentation/actions.py and consequences.py. */
import { api } from '../app/api.ts';

export type ActionName = 'pause' | 'resume' | 'stop' | 'restart' | 'rerun' | 'scale' | 'debug' | 'delete' | 'suspend' | 'uninstall';

export interface Target {
  kind: string;
  namespace: string;
  name: string;
  uid?: string;
}

/** Why an action is not possible now. */
export interface Refusal {
  code: string;
  message: string;
  [parameter: string]: unknown;
}

export interface Consequence {
  code: string;
  [parameter: string]: unknown;
}

export interface Preview {
  action: ActionName;
  uid: string;
  possible: boolean;
  reason: Refusal | null;
  consequences: Consequence[];
}

/** What a person chooses beside the action. */
export interface Choices {
  replicas?: number;
  newName?: string;
}

/** An action of a page's view: whether its button works. */
export interface PossibleAction {
  action: ActionName;
  possible: boolean;
  reason: Refusal | null;
}

/** Actions that stop processes or remove something: they ask first, in red. */
export const DANGEROUS: ReadonlySet<ActionName> = new Set(['stop', 'restart', 'delete', 'uninstall']);

// A target may be a whole row or view: only what identifies it is sent.
function identity({ kind, namespace, name, uid }: Target): Target {
  return { kind, namespace, name, ...(uid ? { uid } : {}) };
}

function body(action: ActionName, target: Target, choices: Choices) {
  return { action, ...identity(target), ...choices };
}

/** Ask what would happen. */
export function previewAction(action: ActionName, target: Target, choices: Choices = {}, signal?: AbortSignal): Promise<Preview> {
  return api.post<Preview>('/api/actions/preview', body(action, target, choices), signal ? { signal } : {});
}

/** Do it. `object` is the one that was written, or the one that was created. */
export function doAction(action: ActionName, target: Target, choices: Choices = {}): Promise<{ object: { name: string; namespace: string } }> {
  return api.post('/api/actions', body(action, target, choices));
}

/** The result for one of many objects: a preview or what was written, or the refusal. */
export interface BulkResult extends Partial<Preview> {
  kind: string;
  namespace: string;
  name: string;
  code?: number;
  error?: { code: number; reason?: string; message: string };
}

/** As many objects as the server takes at once. */
const MAX_OBJECTS = 500;

async function inBulk(path: string, action: ActionName, targets: readonly Target[], onProgress?: (done: number) => void): Promise<BulkResult[]> {
  const results: BulkResult[] = [];
  for (const part of chunks(targets, MAX_OBJECTS)) {
    const objects = part.map(identity);
    results.push(...(await api.post<{ results: BulkResult[] }>(path, { action, objects })).results);
    onProgress?.(results.length);
  }
  return results;
}

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}

export function previewMany(action: ActionName, targets: readonly Target[]): Promise<BulkResult[]> {
  return inBulk('/api/actions/preview', action, targets);
}

export function doMany(action: ActionName, targets: readonly Target[], onProgress?: (done: number) => void): Promise<BulkResult[]> {
  return inBulk('/api/actions', action, targets, onProgress);
}
