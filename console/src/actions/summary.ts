/** What an action on many jobs would do, in numbers. */
import type { BulkResult, Refusal } from './types.ts';

export interface BulkSummary {
  /** Jobs that the action would change. */
  possible: number;
  /** Jobs that it would leave as they are, by why. */
  refused: { refusal: Refusal; count: number }[];
  /** Replicas that would be stopped, in how many jobs, and the longest time that one may take. */
  replicas: number;
  running: number;
  graceSeconds: number;
  /** Claims whose files stay. */
  claims: string[];
  /** TensorBoards that would go with their jobs. */
  tensorboards: number;
}

export function summarize(previews: readonly BulkResult[]): BulkSummary {
  const refused = new Map<string, { refusal: Refusal; count: number }>();
  const claims = new Set<string>();
  const summary = { possible: 0, replicas: 0, running: 0, graceSeconds: 0, tensorboards: 0 };
  for (const preview of previews) {
    if (!preview.possible) {
      const refusal = preview.reason ?? { code: preview.error?.reason ?? 'Unknown', message: preview.error?.message ?? '' };
      const entry = refused.get(refusal.code) ?? { refusal, count: 0 };
      entry.count += 1;
      refused.set(refusal.code, entry);
      continue;
    }
    summary.possible += 1;
    for (const consequence of preview.consequences ?? []) {
      if (consequence.code === 'ReplicasStop') {
        summary.running += 1;
        summary.replicas += Number(consequence.replicas ?? 0);
        summary.graceSeconds = Math.max(summary.graceSeconds, Number(consequence.graceSeconds ?? 0));
      } else if (consequence.code === 'FilesStay') for (const claim of (consequence.claims as string[] | undefined) ?? []) claims.add(claim);
      else if (consequence.code === 'TensorBoardGoes') summary.tensorboards += 1;
    }
  }
  return { ...summary, refused: [...refused.values()], claims: [...claims].sort() };
}
