import type { ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';
import type { Tone } from '../app/tokens.ts';

const TONES: Record<string, Tone> = {
  Running: 'running',
  Ready: 'running',
  Resuming: 'pending',
  Pending: 'pending',
  Creating: 'pending',
  Waiting: 'pending',
  Terminating: 'pending',
  Succeeded: 'succeeded',
  Completed: 'succeeded',
  Done: 'succeeded',
  Failed: 'failed',
  Error: 'failed',
  Paused: 'paused',
  Suspended: 'paused',
  Stopped: 'paused',
};

/** The tone of a phase; one that nobody knows is `unknown`. */
export function toneOf(phase: string): Tone {
  return TONES[phase] ?? 'unknown';
}

const GLYPHS: Record<Tone, ReactNode> = {
  running: (
    <>
      <circle className="pl-pulse" cx="8" cy="8" r="3.5" />
      <circle cx="8" cy="8" r="3.5" />
    </>
  ),
  succeeded: <path d="m3.5 8.4 3 3 6-6.6" className="pl-stroke" />,
  failed: <path d="m4.5 4.5 7 7m0-7-7 7" className="pl-stroke" />,
  pending: <path d="M4.6 3h6.8M4.6 13h6.8M5.6 3c0 3 4.8 4 4.8 5s-.2 2-.2 5M10.4 3c0 3-4.8 4-4.8 5s.2 2 .2 5" className="pl-stroke pl-thin" />,
  paused: <path d="M6 4.2v7.6M10 4.2v7.6" className="pl-stroke" />,
  unknown: <path d="M6.2 6.2a1.9 1.9 0 1 1 2.6 1.9c-.6.3-.8.7-.8 1.3M8 12v.1" className="pl-stroke pl-thin" />,
};

/** The sign of a state, without its word; give it a label where no word stands beside it. */
export function StatusIcon({ tone, label }: { tone: Tone; label?: string }) {
  return (
    <svg className={`pl-glyph pl-tone-${tone}`} viewBox="0 0 16 16" width="16" height="16" {...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': true })}>
      {GLYPHS[tone]}
    </svg>
  );
}

/** A phase as icon, word and colour. `children` replaces the word. */
export function StatusTag({ phase, tone, children }: { phase: string; tone?: Tone; children?: ReactNode }) {
  const { common } = useText();
  const words: Record<string, string> = common.phases;
  const shown = tone ?? toneOf(phase);
  return (
    <span className={`pl-status pl-tone-${shown}`} data-phase={phase}>
      <StatusIcon tone={shown} />
      <span>{children ?? words[phase] ?? phase}</span>
    </span>
  );
}
