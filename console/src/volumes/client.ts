/** Files of a claim, through its Explorer. */
import { api, ApiError } from '../app/api.ts';

export interface FileEntry {
  name: string;
  type: 'file' | 'folder' | 'link' | 'other';
  size: number;
  /** Seconds since 1970. */
  modified: number;
  uid: number;
  target?: string;
}

export interface FilePage {
  entries: FileEntry[];
  total: number;
  /** Where the next page begins; empty after the last one. */
  next: string;
}

export interface ClaimRef {
  namespace: string;
  claim: string;
}

/** Percent-encode a text. A byte of a name that is no UTF-8 comes as a lone surrogate, and goes back as that byte. */
export function encodeName(text: string): string {
  let encoded = '';
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (code >= 0xdc80 && code <= 0xdcff) encoded += `%${(code - 0xdc00).toString(16).toUpperCase()}`;
    else encoded += code >= 0xd800 && code <= 0xdfff ? '%EF%BF%BD' : encodeURIComponent(character);
  }
  return encoded;
}

/** A name as people read it. */
export function readableName(name: string): string {
  return name.replace(/[\ud800-\udfff]/gu, '\ufffd');
}

export function filesUrl({ namespace, claim }: ClaimRef, route: string, query: Record<string, string | number | boolean> = {}): string {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeName(String(value))}`);
  return `/api/volumes/${encodeURIComponent(namespace)}/${encodeURIComponent(claim)}/${route}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
}

const WAKES = 6;

/** Have the Explorer of a claim run. It may take longer than one request waits. */
export async function openVolume(ref: ClaimRef, signal?: AbortSignal): Promise<void> {
  for (let left = WAKES; ; left -= 1) {
    try {
      await api.post(filesUrl(ref, 'open'), {}, signal ? { signal } : {});
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 503 || left === 0) throw error;
    }
  }
}

export const files = {
  list: (ref: ClaimRef, path: string, after = '', signal?: AbortSignal) =>
    api.get<FilePage>(filesUrl(ref, 'list', { path, limit: 500, ...(after === '' ? {} : { after }) }), signal ? { signal } : {}),
  makeFolder: (ref: ClaimRef, path: string) => api.post(filesUrl(ref, 'folder', { path })),
  rename: (ref: ClaimRef, path: string, to: string) => api.post(filesUrl(ref, 'rename', { path, to })),
  remove: (ref: ClaimRef, path: string) => api.delete(filesUrl(ref, 'file', { path, recursive: true })),
};

export function join(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** The folders on the way to a path, each with its own path. */
export function crumbs(path: string): { name: string; path: string }[] {
  const parts = path.split('/').filter((part) => part !== '');
  return parts.map((name, index) => ({ name, path: parts.slice(0, index + 1).join('/') }));
}

export interface Fill {
  used: number;
  capacity: number;
}

interface Summary {
  pods?: { volume?: Measured[] }[];
  claims?: Measured[];
}

interface Measured {
  pvcRef?: { namespace: string; name: string };
  usedBytes?: number;
  capacityBytes?: number;
}

/** How full claims are, by namespace/name, as far as the nodes say and the person may ask them. */
export async function claimFills(signal?: AbortSignal): Promise<Map<string, Fill>> {
  const fills = new Map<string, Fill>();
  const options = signal ? { signal } : {};
  const nodes = await api.get<{ items: { metadata: { name: string } }[] }>('/k8s/api/v1/nodes?limit=200', options);
  const summaries = await Promise.allSettled(
    nodes.items.map((node) => api.get<Summary>(`/k8s/api/v1/nodes/${encodeURIComponent(node.metadata.name)}/proxy/stats/summary`, options)),
  );
  for (const summary of summaries) {
    if (summary.status === 'rejected') continue;
    for (const volume of [...(summary.value.pods ?? []).flatMap((pod) => pod.volume ?? []), ...(summary.value.claims ?? [])])
      if (volume.pvcRef && volume.capacityBytes)
        fills.set(`${volume.pvcRef.namespace}/${volume.pvcRef.name}`, { used: volume.usedBytes ?? 0, capacity: volume.capacityBytes });
  }
  return fills;
}
