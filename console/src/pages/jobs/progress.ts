/** How far a training is, as far as its log says so. */
export interface TrainingProgress {
  unit: string;
  done: number;
  total: number;
}

export function readProgress(value: unknown): TrainingProgress | null {
  if (value === null || typeof value !== 'object') return null;
  const { unit, done, total } = value as Partial<TrainingProgress>;
  if (typeof done !== 'number' || typeof total !== 'number' || total <= 0) return null;
  return { unit: typeof unit === 'string' ? unit : '', done, total };
}

export function percent({ done, total }: TrainingProgress): number {
  return Math.round(Math.min(1, Math.max(0, done / total)) * 100);
}
