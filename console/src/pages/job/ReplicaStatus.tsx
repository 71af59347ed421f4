import { useText } from '../../app/i18n.tsx';
import { StatusTag } from '../../parts/index.ts';

/** The phase of a replica, or of as many as `count` says: a deleted one was stopped, and one that is being created waits. */
export function ReplicaStatus({ phase, count }: { phase: string; count?: number }) {
  const { common, job } = useText();
  const { states } = job.timeline;
  const words: Record<string, string> = { ...common.phases, ...states, Deleted: states.Stopped, Creating: states.Waiting };
  const word = words[phase] ?? phase;
  return <StatusTag phase={phase === 'Deleted' ? 'Stopped' : phase}>{count === undefined ? word : `${count} ${word}`}</StatusTag>;
}
