/** Times and durations in words. */
import type { Words } from '../app/i18n.tsx';

type Common = Words['common'];

export function milliseconds(time: string | number | null | undefined): number | undefined {
  if (time === null || time === undefined || time === '') return undefined;
  const value = typeof time === 'number' ? time * (time < 1e11 ? 1000 : 1) : Date.parse(time);
  return Number.isNaN(value) ? undefined : value;
}

export function agoText(from: number, now: number, { ago }: Common): string {
  const seconds = Math.round((now - from) / 1000);
  if (seconds < -5) return ago.future;
  if (seconds < 5) return ago.now;
  if (seconds < 60) return ago.seconds(seconds);
  if (seconds < 3600) return ago.minutes(Math.floor(seconds / 60));
  if (seconds < 86_400) return ago.hours(Math.floor(seconds / 3600));
  return ago.days(Math.floor(seconds / 86_400));
}

export function durationText(duration: number, { duration: words }: Common): string {
  const seconds = Math.max(0, Math.floor(duration / 1000));
  if (seconds < 60) return words.seconds(seconds);
  if (seconds < 3600) return words.minutes(Math.floor(seconds / 60), seconds % 60);
  if (seconds < 86_400) return words.hours(Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60));
  return words.days(Math.floor(seconds / 86_400), Math.floor((seconds % 86_400) / 3600));
}

// Making one takes longer than drawing a cell, and a list has two in each row.
function formatter(options: Intl.DateTimeFormatOptions): (time: number, lang: string) => string {
  const formats = new Map<string, Intl.DateTimeFormat>();
  return (time, lang) => {
    const format = formats.get(lang) ?? new Intl.DateTimeFormat(lang, options);
    formats.set(lang, format);
    return format.format(time);
  };
}

/** A point in time in the browser's zone, to the second. */
export const absoluteText = formatter({ dateStyle: 'medium', timeStyle: 'medium' });

export const clockText = formatter({ timeStyle: 'medium', hour12: false });

/** How long to wait before a text that says how old something is can change. */
export function nextChange(age: number): number {
  if (age < 60_000) return 1000;
  return age < 3_600_000 ? 15_000 : 60_000;
}
