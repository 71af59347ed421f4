import type { JobEvent } from './view.ts';

export type EventFilter = 'all' | 'warnings' | 'job';

/** The events that are warnings, or about the job itself, and contain a text. */
export function filterEvents(events: readonly JobEvent[], only: EventFilter, text: string, kind: string): JobEvent[] {
  const word = text.trim().toLowerCase();
  return events.filter(
    (event) =>
      (only !== 'warnings' || event.type === 'Warning') &&
      (only !== 'job' || event.object.startsWith(`${kind}/`)) &&
      (word === '' || `${event.reason} ${event.message} ${event.object}`.toLowerCase().includes(word)),
  );
}
