/** Applications as the list shows them. */
export interface TrainingApp {
  metadata: { name: string; namespace: string; uid: string; creationTimestamp?: string; deletionTimestamp?: string };
  spec?: { template?: { name?: string; version?: string }; job?: { kind?: string }; suspend?: boolean };
  status?: { phase?: string; revision?: number; updated?: string; waiting?: string; message?: string; job?: { kind?: string; name?: string } };
}

export const PHASES = ['Running', 'Pending', 'Stopped', 'Failed', 'Succeeded', 'Deleted'] as const;

export function phaseOf(app: TrainingApp): string {
  return app.metadata.deletionTimestamp ? 'Terminating' : (app.status?.phase ?? 'Pending');
}

/** When an application changed last. */
export function updatedOf(app: TrainingApp): string {
  return app.status?.updated ?? app.metadata.creationTimestamp ?? '';
}

/** Why it waits or failed, in the cluster's words. */
export function reasonOf(app: TrainingApp): string {
  const phase = phaseOf(app);
  if (phase === 'Failed') return app.status?.message ?? '';
  return phase === 'Succeeded' ? '' : (app.status?.waiting ?? '');
}

/** The applications that match, the last changed first. */
export function shownApps(apps: readonly TrainingApp[], find: string, phase: string): TrainingApp[] {
  const words = find.trim().toLowerCase();
  return apps
    .filter((app) => (phase === '' || phaseOf(app) === phase) && `${app.metadata.name} ${app.spec?.template?.name ?? ''}`.toLowerCase().includes(words))
    .sort((left, right) => updatedOf(right).localeCompare(updatedOf(left)) || left.metadata.name.localeCompare(right.metadata.name));
}

/** The collection in the Kubernetes API; '' stands for all namespaces. */
export function listPath(namespace: string): string {
  return `/apis/paceline.dev/v1beta1/${namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`}trainingapps`;
}
