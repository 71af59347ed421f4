import { useText } from '../app/i18n.tsx';
import type { Tone } from '../app/tokens.ts';
import { StatusTag } from '../parts/index.ts';
import { phaseOf, type AppPhase, type Service } from './service.ts';

const TONES: Record<AppPhase, Tone> = { Initializing: 'pending', Running: 'running', Paused: 'paused', Deleting: 'pending' };

/** The state of a TensorBoard or notebook as icon, word and colour. */
export function AppStatus({ service }: { service: Service }) {
  const t = useText();
  const phase = phaseOf(service);
  return (
    <StatusTag phase={phase} tone={TONES[phase]}>
      {t.interactive.phases[phase]}
    </StatusTag>
  );
}
