/** A job in the list: what the server sends as an array, in the order of COLUMNS (src/paceline/console/rows.py has the same). */
export const COLUMNS = [
  'uid',
  'namespace',
  'name',
  'kind',
  'phase',
  'reason',
  'created',
  'started',
  'ended',
  'replicas',
  'cpuRequest',
  'cpuLimit',
  'memoryRequest',
  'memoryLimit',
  'devices',
  'queue',
  'priority',
  'labels',
  'app',
  'revision',
  'tensorboard',
  'restarts',
  'progress',
] as const;

export interface Row {
  uid: string;
  namespace: string;
  name: string;
  kind: string;
  phase: string;
  reason: string;
  /** Times are RFC 3339, or empty. */
  created: string;
  started: string;
  ended: string;
  /** Ready and wanted replicas by type. */
  replicas: Record<string, [number, number]>;
  cpuRequest: number;
  cpuLimit: number;
  memoryRequest: number;
  memoryLimit: number;
  devices: Record<string, number>;
  queue: string;
  priority: string;
  labels: Record<string, string>;
  app: string;
  revision: string | number;
  tensorboard: string;
  restarts: number;
  progress: unknown;
}

export function decodeRow(cells: unknown[]): Row {
  const row: Record<string, unknown> = {};
  COLUMNS.forEach((column, index) => {
    row[column] = cells[index];
  });
  return row as unknown as Row;
}
