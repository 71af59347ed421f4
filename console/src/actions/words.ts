/** Consequences and refusals of actions in words. A code that nobody knows is shown as it is. */
import type { Words } from '../app/i18n.tsx';
import type { Consequence, Refusal } from './types.ts';

type ActionWords = Words['actions'];

const text = (value: unknown) => (value === null || value === undefined ? '' : String(value));

export function sayConsequence(consequence: Consequence, { consequences: say }: ActionWords): string {
  const at = (name: string) => text(consequence[name]);
  switch (consequence.code) {
    case 'ReplicasStop':
      return say.ReplicasStop(Number(consequence.replicas), Number(consequence.graceSeconds));
    case 'NewAttempt':
      return say.NewAttempt(Number(consequence.attempt));
    case 'RestartNotCounted':
      return say.RestartNotCounted(at('restartsLeft'));
    case 'SizeChanges':
      return say.SizeChanges(at('from'), at('to'));
    case 'FilesStay':
      return say.FilesStay(((consequence.claims as string[] | undefined) ?? []).join(', '));
    case 'NewJob':
    case 'OriginalStays':
    case 'TensorBoardGoes':
    case 'ApplicationNotes':
      return say[consequence.code](at('name'));
    case 'TrainingStops':
    case 'TrainingResumes':
      return say[consequence.code](at('job'));
    case 'NewRevision':
      return say.NewRevision(at('revision'), at('stops'));
    case 'ChangedRevision':
      return say.ChangedRevision(at('revision'), at('job'), at('stops'));
    case 'ApplicationGoes':
      return say.ApplicationGoes(at('revisions'), at('stops'));
    case 'NothingRuns':
    case 'JobStays':
    case 'JobGoes':
    case 'ProgramNotStarted':
    case 'AllRestart':
    case 'PodStops':
    case 'PodStarts':
    case 'ObjectGoes':
    case 'WaitsForResume':
    case 'RevisionsStay':
      return say[consequence.code]();
    default:
      return consequence.code;
  }
}

/** Whether a consequence says that something is kept. */
export function isKept(consequence: Consequence): boolean {
  return ['JobStays', 'OriginalStays', 'FilesStay', 'ApplicationNotes', 'RestartNotCounted', 'NothingRuns', 'RevisionsStay'].includes(consequence.code);
}

/** Why an action is not possible, in the person's language. */
export function sayRefusal(refusal: Refusal, { actions, common }: Pick<Words, 'actions' | 'common'>): string {
  const phases: Record<string, string> = common.phases;
  switch (refusal.code) {
    case 'Ended':
      return actions.refused.Ended(phases[text(refusal.phase)] ?? text(refusal.phase));
    case 'OutOfBounds':
      return actions.refused.OutOfBounds(text(refusal.minReplicas), text(refusal.maxReplicas) || '∞');
    case 'BeingDeleted':
    case 'AlreadyPaused':
    case 'NotPaused':
    case 'NotElastic':
    case 'SameSize':
    case 'AlreadyInDebugMode':
      return actions.refused[refusal.code]();
    default:
      return refusal.message || refusal.code;
  }
}
