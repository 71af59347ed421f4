/** How a job of the history ended. */
import { useText, type Words } from '../../app/i18n.tsx';
import { StatusTag } from '../../parts/index.ts';

export function outcomeText(phase: string, { common, history }: Pick<Words, 'common' | 'history'>): string {
  const phases: Record<string, string> = { ...common.phases, Deleted: history.deleted };
  return phases[phase] ?? phase;
}

/** A record is written when its job begins and when it ends, so it cannot say whether a job in between runs or waits. */
export function Outcome({ phase, isOver }: { phase: string; isOver: boolean }) {
  const t = useText();
  if (!isOver) return <StatusTag phase={phase} tone="unknown">{t.history.underWay}</StatusTag>;
  return <StatusTag phase={phase}>{outcomeText(phase, t)}</StatusTag>;
}
