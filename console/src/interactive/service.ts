/** What a TensorBoard or Notebook says about itself, read from its object. */
import { pathOf } from '../app/router.tsx';

export type AppKind = 'TensorBoard' | 'Notebook';

export const PLURALS: Record<AppKind, 'tensorboards' | 'notebooks'> = { TensorBoard: 'tensorboards', Notebook: 'notebooks' };

interface Container {
  name?: string;
  image?: string;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

interface Condition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
}

export interface Service {
  kind?: string;
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    ownerReferences?: { kind: string; name: string; controller?: boolean }[];
  };
  spec?: {
    suspend?: boolean;
    image?: string;
    trainingLogFilesets?: string[];
    logDir?: {
      pvc?: { name: string; subPath?: string[] }[];
      s3?: { uri?: string[] };
      http?: { url?: string[] };
    };
    resources?: Container['resources'];
    template?: {
      spec?: { containers?: Container[]; volumes?: { persistentVolumeClaim?: { claimName: string } }[] };
    };
  };
  status?: { phase?: string; waiting?: string; lastActivity?: string; conditions?: Condition[] };
}

export type AppPhase = 'Initializing' | 'Running' | 'Paused' | 'Deleting';

export function phaseOf(service: Service): AppPhase {
  if (service.metadata.deletionTimestamp) return 'Deleting';
  if (service.status?.phase === 'Running' && !service.spec?.suspend) return 'Running';
  return service.status?.phase === 'Paused' || service.spec?.suspend ? 'Paused' : 'Initializing';
}

/** Why it sleeps: a person paused it, nobody used it, or its program has ended. */
export function pauseReason(service: Service): 'Suspended' | 'Idle' | 'Ended' {
  if (service.spec?.suspend) return 'Suspended';
  const reason = condition(service, 'Suspended')?.reason;
  return reason === 'Idle' || reason === 'Ended' ? reason : 'Suspended';
}

function condition(service: Service, type: string): Condition | undefined {
  return service.status?.conditions?.find((entry) => entry.type === type);
}

/** What it waits for, in the server's words; empty while it just starts. */
export function waitingFor(service: Service | undefined): string {
  return service?.status?.waiting ?? '';
}

/** Where the logs of a TensorBoard are: claim/folder, s3://…, or a URL. */
export function logPlaces(service: Service): string[] {
  const { trainingLogFilesets = [], logDir = {} } = service.spec ?? {};
  const filesets = trainingLogFilesets.map((uri) => uri.replace(/^t9k:\/\/(pvc|minio)\//, ''));
  const claims = (logDir.pvc ?? []).flatMap(({ name, subPath }) =>
    (subPath?.length ? subPath : ['']).map((folder) => [name, ...folder.split('/').filter((part) => part && part !== '.')].join('/')),
  );
  return [...new Set([...filesets, ...claims, ...(logDir.s3?.uri ?? []), ...(logDir.http?.url ?? [])])].filter(Boolean);
}

/** The claims that a notebook mounts. */
export function claimsOf(service: Service): string[] {
  const volumes = service.spec?.template?.spec?.volumes ?? [];
  return [...new Set(volumes.flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? []))];
}

function containerOf(service: Service): Container | undefined {
  const containers = service.spec?.template?.spec?.containers ?? [];
  return containers.find((container) => container.name === 'notebook') ?? containers[0];
}

export function imageOf(service: Service): string {
  return service.spec?.image ?? containerOf(service)?.image ?? '';
}

/** What it asks for: its requests, or its limits where it has none. */
export function sizeOf(service: Service): { cpu?: string; memory?: string; devices: [name: string, count: string][] } {
  const resources = service.spec?.resources ?? containerOf(service)?.resources ?? {};
  const asked = { ...resources.limits, ...resources.requests };
  const devices = Object.entries(asked).filter(([name, count]) => name.includes('/') && count !== '0');
  return { ...(asked.cpu ? { cpu: asked.cpu } : {}), ...(asked.memory ? { memory: asked.memory } : {}), devices };
}

/** The job that a TensorBoard belongs to, and with which it is deleted. */
export function ownerOf(service: Service): { kind: string; name: string } | undefined {
  return service.metadata.ownerReferences?.find((owner) => owner.controller);
}

/** The page of that owner. */
export function ownerUrl(namespace: string, { kind, name }: { kind: string; name: string }): string {
  return kind === 'TrainingApp' ? pathOf('apps', namespace, name) : pathOf('jobs', namespace, kind, name);
}

/** The collection in the Kubernetes API; '' stands for all namespaces. */
export function listPath(kind: AppKind, namespace: string): string {
  const middle = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  return `/apis/tensorstack.dev/v1beta1/${middle}${PLURALS[kind]}`;
}
