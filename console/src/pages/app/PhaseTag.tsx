import { useText } from '../../app/i18n.tsx';
import { StatusTag, toneOf } from '../../parts/index.ts';

/** The state of an application or a part of it as icon, word and colour. */
export function PhaseTag({ phase }: { phase: string }) {
  const { apps } = useText();
  const tone = phase === 'Initializing' ? 'pending' : phase === 'Deleted' ? 'unknown' : toneOf(phase);
  return (
    <StatusTag phase={phase} tone={tone}>
      {apps.phases[phase] ?? phase}
    </StatusTag>
  );
}
