/** Volumes, mounts and shared memory of a pod template: one thing for people, two or three places in the YAML. */
import { parseQuantity } from '../parts/Quantity.tsx';
import type { Path } from './document.ts';

export const SHARED_MEMORY = '/dev/shm';
const SHARED_NAME = 'dshm';

export type Change = readonly [Path, unknown];
type Loose = Record<string, unknown>;

export const VOLUME_TYPES = ['claim', 'memory', 'empty', 'configMap', 'secret', 'hostPath'] as const;
export type VolumeType = (typeof VOLUME_TYPES)[number] | 'other';

/** A volume as a person sees it: what it is, under which name, and where the container finds it. */
export interface VolumeRow {
  name: string;
  type: VolumeType;
  /** The claim, config map, secret, folder or size. */
  source: string;
  mountPath: string;
  subPath: string;
  readOnly: boolean;
  /** Places in the lists of the template; -1 where there is none. */
  volume: number;
  mount: number;
}

export interface Pod {
  /** Path of the pod's spec, and number of the container that the form shows. */
  at: Path;
  container: number;
  value: unknown;
}

function list(value: unknown, name: string): Loose[] {
  const items = value !== null && typeof value === 'object' ? (value as Loose)[name] : undefined;
  return Array.isArray(items) ? items.map((item) => (item !== null && typeof item === 'object' ? (item as Loose) : {})) : [];
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function inside(value: unknown, ...names: string[]): unknown {
  return names.reduce<unknown>((here, name) => (here !== null && typeof here === 'object' ? (here as Loose)[name] : undefined), value);
}

export function containers(pod: Pod): Loose[] {
  return list(pod.value, 'containers');
}

function mountsOf(pod: Pod, container = pod.container): Loose[] {
  return list(containers(pod)[container], 'volumeMounts');
}

export function typeOf(volume: Loose | undefined): [VolumeType, string] {
  if (volume === undefined) return ['other', ''];
  if (volume.persistentVolumeClaim !== undefined) return ['claim', text(inside(volume, 'persistentVolumeClaim', 'claimName'))];
  if (volume.configMap !== undefined) return ['configMap', text(inside(volume, 'configMap', 'name'))];
  if (volume.secret !== undefined) return ['secret', text(inside(volume, 'secret', 'secretName'))];
  if (volume.hostPath !== undefined) return ['hostPath', text(inside(volume, 'hostPath', 'path'))];
  if (volume.emptyDir === undefined) return ['other', ''];
  const isMemory = inside(volume, 'emptyDir', 'medium') === 'Memory';
  return [isMemory ? 'memory' : 'empty', text(inside(volume, 'emptyDir', 'sizeLimit'))];
}

/** Every mount of the container, and every volume that it does not mount; shared memory has a control of its own. */
export function volumeRows(pod: Pod): VolumeRow[] {
  const volumes = list(pod.value, 'volumes');
  const rows = mountsOf(pod).map((mount, index): VolumeRow => {
    const name = text(mount.name);
    const volume = volumes.findIndex((candidate) => candidate.name === name);
    const [type, source] = typeOf(volumes[volume]);
    const place = { mountPath: text(mount.mountPath), subPath: text(mount.subPath), readOnly: mount.readOnly === true };
    return { name, type, source, ...place, volume, mount: index };
  });
  const used = new Set(containers(pod).flatMap((_, index) => mountsOf(pod, index).map((mount) => mount.name)));
  volumes.forEach((volume, index) => {
    const [type, source] = typeOf(volume);
    if (!used.has(volume.name)) rows.push({ name: text(volume.name), type, source, mountPath: '', subPath: '', readOnly: false, volume: index, mount: -1 });
  });
  return rows.filter((row) => !isSharedMemory(row));
}

function isSharedMemory(row: VolumeRow): boolean {
  return row.mountPath.replace(/\/$/, '') === SHARED_MEMORY && row.type === 'memory';
}

export function sourceOf(type: VolumeType, source: string): Loose {
  switch (type) {
    case 'claim':
      return { persistentVolumeClaim: { claimName: source } };
    case 'configMap':
      return { configMap: { name: source } };
    case 'secret':
      return { secret: { secretName: source } };
    case 'hostPath':
      return { hostPath: { path: source } };
    case 'memory':
      return { emptyDir: { medium: 'Memory', ...(source === '' ? {} : { sizeLimit: source }) } };
    default:
      return { emptyDir: source === '' ? {} : { sizeLimit: source } };
  }
}

const SOURCE_PATHS: Record<string, [string, string]> = {
  claim: ['persistentVolumeClaim', 'claimName'],
  configMap: ['configMap', 'name'],
  secret: ['secret', 'secretName'],
  hostPath: ['hostPath', 'path'],
  memory: ['emptyDir', 'sizeLimit'],
  empty: ['emptyDir', 'sizeLimit'],
};

/** The changes that give a row another claim, name, path. */
export function changeVolume(pod: Pod, row: VolumeRow, patch: Partial<VolumeRow>): Change[] {
  const volume = [...pod.at, 'volumes', row.volume];
  const mount = [...pod.at, 'containers', pod.container, 'volumeMounts', row.mount];
  const changes: Change[] = [];
  if (patch.type !== undefined && patch.type !== row.type) {
    changes.push([volume, { name: row.name, ...sourceOf(patch.type, '') }]);
  } else if (patch.source !== undefined && row.volume >= 0) {
    const isSize = row.type === 'memory' || row.type === 'empty';
    changes.push([[...volume, ...(SOURCE_PATHS[row.type] ?? [])], isSize && patch.source === '' ? undefined : patch.source]);
  }
  if (patch.name !== undefined) {
    if (row.volume >= 0) changes.push([[...volume, 'name'], patch.name]);
    containers(pod).forEach((_, container) =>
      mountsOf(pod, container).forEach((candidate, index) => {
        const isOwn = container === pod.container && index === row.mount;
        if (isOwn || (row.name !== '' && candidate.name === row.name)) {
          changes.push([[...pod.at, 'containers', container, 'volumeMounts', index, 'name'], patch.name]);
        }
      }),
    );
  }
  if (patch.mountPath !== undefined) {
    if (row.mount >= 0) changes.push([[...mount, 'mountPath'], patch.mountPath]);
    else changes.push([[...pod.at, 'containers', pod.container, 'volumeMounts', mountsOf(pod).length], { name: row.name, mountPath: patch.mountPath }]);
  }
  if (patch.subPath !== undefined && row.mount >= 0) changes.push([[...mount, 'subPath'], patch.subPath === '' ? undefined : patch.subPath]);
  if (patch.readOnly !== undefined && row.mount >= 0) changes.push([[...mount, 'readOnly'], patch.readOnly ? true : undefined]);
  return changes;
}

export function addVolume(pod: Pod, type: VolumeType, source = '', mountPath = ''): Change[] {
  const name = freeName(pod, 'data');
  return [
    [[...pod.at, 'containers', pod.container, 'volumeMounts', mountsOf(pod).length], { name, mountPath }],
    [[...pod.at, 'volumes', list(pod.value, 'volumes').length], { name, ...sourceOf(type, source) }],
  ];
}

export function removeVolume(pod: Pod, row: VolumeRow): Change[] {
  const changes: Change[] = [];
  if (row.mount >= 0) changes.push([[...pod.at, 'containers', pod.container, 'volumeMounts', row.mount], undefined]);
  const others = containers(pod).some((_, container) =>
    mountsOf(pod, container).some((mount, index) => mount.name === row.name && !(container === pod.container && index === row.mount)),
  );
  if (row.volume >= 0 && !others) changes.push([[...pod.at, 'volumes', row.volume], undefined]);
  return changes;
}

function freeName(pod: Pod, stem: string): string {
  const names = new Set(list(pod.value, 'volumes').map((volume) => volume.name));
  if (!names.has(stem)) return stem;
  let number = 2;
  while (names.has(`${stem}-${number}`)) number++;
  return `${stem}-${number}`;
}

/** The size of /dev/shm: `null` without one of its own, '' without a limit. */
export function sharedMemory(pod: Pod): string | null {
  const mount = mountsOf(pod).find((candidate) => text(candidate.mountPath).replace(/\/$/, '') === SHARED_MEMORY);
  if (mount === undefined) return null;
  const [type, size] = typeOf(list(pod.value, 'volumes').find((volume) => volume.name === mount.name));
  return type === 'memory' ? size : null;
}

export function setSharedMemory(pod: Pod, size: string | null): Change[] {
  const volumes = list(pod.value, 'volumes');
  const mount = mountsOf(pod).findIndex((candidate) => text(candidate.mountPath).replace(/\/$/, '') === SHARED_MEMORY);
  if (mount === -1) {
    if (size === null) return [];
    const name = freeName(pod, SHARED_NAME);
    return [
      [[...pod.at, 'containers', pod.container, 'volumeMounts', mountsOf(pod).length], { name, mountPath: SHARED_MEMORY }],
      [[...pod.at, 'volumes', volumes.length], { name, ...sourceOf('memory', size) }],
    ];
  }
  const volume = volumes.findIndex((candidate) => candidate.name === mountsOf(pod)[mount]?.name);
  if (size !== null) return [[[...pod.at, 'volumes', volume, 'emptyDir', 'sizeLimit'], size === '' ? undefined : size]];
  const row = { name: text(mountsOf(pod)[mount]?.name), type: 'memory', source: '', mountPath: '', subPath: '', readOnly: false, volume, mount } as const;
  return removeVolume(pod, row);
}

/** Sizes that the slider stops at. */
export const SIZES = ['64Mi', '128Mi', '256Mi', '512Mi', '1Gi', '2Gi', '4Gi', '8Gi', '16Gi', '32Gi', '64Gi'];

export function nearestSize(size: string): number {
  const bytes = parseQuantity(size) ?? 0;
  let best = 0;
  SIZES.forEach((candidate, index) => {
    if ((parseQuantity(candidate) ?? 0) <= bytes) best = index;
  });
  return best;
}

/** The name of a device among the resources of a container, and how many it asks for. */
export function deviceOf(resources: unknown): [string, string] {
  const limits = inside(resources, 'limits') ?? inside(resources, 'requests');
  const entry = Object.entries(limits !== null && typeof limits === 'object' ? limits : {}).find(([name]) => isDevice(name));
  return entry ? [entry[0], text(entry[1])] : ['', ''];
}

function isDevice(name: string): boolean {
  const [domain, rest] = name.split('/');
  return rest !== undefined && !domain!.endsWith('kubernetes.io');
}

/** The changes that ask for a number of devices of a name, instead of those asked for before. */
export function setDevice(resources: Path, value: unknown, name: string, count: number | null): Change[] {
  const [old] = deviceOf(value);
  const changes: Change[] = [];
  for (const group of ['requests', 'limits']) {
    if (old !== '' && (old !== name || count === null) && inside(value, group, old) !== undefined) changes.push([[...resources, group, old], undefined]);
  }
  if (count === null || name === '') return changes;
  if (inside(value, 'requests', name) !== undefined) changes.push([[...resources, 'requests', name], count]);
  changes.push([[...resources, 'limits', name], count]);
  return changes;
}
