/** What data may come from: the claims of a project, and its buckets. */
import { useEffect, useState } from 'react';
import { useObjects } from '../../app/hooks.ts';
import type { DataSource } from './values.ts';

export interface Claim {
  metadata: { name: string; annotations?: Record<string, string> };
  spec?: { resources?: { requests?: { storage?: string } } };
  status?: { phase?: string; capacity?: { storage?: string } };
}

export interface Bucket {
  secret: string;
  url: string;
}

const LOCATION = 'paceline.dev/location';
const VOLUME = 'paceline.dev/volume';

export function useClaims(namespace: string): Claim[] | undefined {
  return useObjects<Claim>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims`).data;
}

/** Buckets are Secrets with a label; only their metadata are read, never their keys. */
export function useBuckets(namespace: string): Bucket[] {
  const [buckets, setBuckets] = useState<Bucket[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    fetch(`/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets?labelSelector=${encodeURIComponent(VOLUME)}`, { headers: { Accept: accept }, signal: abort.signal, credentials: 'same-origin' })
      .then(async (response) => (response.ok ? ((await response.json()) as { items?: Claim[] }) : {}))
      .then((list) => setBuckets((list.items ?? []).map(({ metadata }) => ({ secret: metadata.name, url: metadata.annotations?.[LOCATION] ?? '' }))))
      .catch(() => undefined);
    return () => abort.abort();
  }, [namespace]);
  return buckets;
}

/** Where the files of a claim are, for people: its folder if it has one, else its size. */
export function claimDetail(claim: Claim): string {
  const location = claim.metadata.annotations?.[LOCATION] ?? '';
  if (location.startsWith('/')) return location;
  return claim.status?.capacity?.storage ?? claim.spec?.resources?.requests?.storage ?? '';
}

/** A data source as the value of a select, and back. */
export function keyOf(data: DataSource): string {
  return data.sort === 'none' ? 'none' : data.sort === 'claim' ? `claim/${data.name}` : `bucket/${data.secret}`;
}

export function sourceOf(key: string, buckets: readonly Bucket[]): DataSource {
  const [sort, name = ''] = key.split('/');
  if (sort === 'claim') return { sort: 'claim', name };
  if (sort === 'bucket') return { sort: 'bucket', secret: name, url: buckets.find((bucket) => bucket.secret === name)?.url ?? '' };
  return { sort: 'none' };
}
