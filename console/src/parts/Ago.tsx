import { useEffect, useState } from 'react';
import { useText } from '../app/i18n.tsx';
import { absoluteText, agoText, durationText, milliseconds, nextChange } from './time.ts';

/** The current time, again as often as the age of `from` can change in words. */
export function useNow(from: number | undefined, isMoving = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (from === undefined || !isMoving) return undefined;
    const timer = setTimeout(() => setNow(Date.now()), nextChange(Date.now() - from));
    return () => clearTimeout(timer);
  }, [from, now, isMoving]);
  return now;
}

type Time = string | number | null | undefined;

/** "4 min ago", with the time in the browser's zone as title. Takes RFC 3339, or seconds since 1970. */
export function Ago({ time }: { time: Time }) {
  const { common, lang } = useText();
  const from = milliseconds(time);
  const now = useNow(from);
  if (from === undefined) return <span className="pl-faint">–</span>;
  return (
    <time className="pl-nowrap" dateTime={new Date(from).toISOString()} title={absoluteText(from, lang)}>
      {agoText(from, Math.max(now, from), common)}
    </time>
  );
}

/** "6 min 12 s" between two times; until now while there is no end. */
export function Duration({ from, to }: { from: Time; to?: Time }) {
  const { common, lang } = useText();
  const start = milliseconds(from);
  const end = milliseconds(to);
  const now = useNow(start, end === undefined);
  if (start === undefined) return <span className="pl-faint">–</span>;
  return (
    <span className="pl-nowrap pl-figures" title={absoluteText(start, lang)}>
      {durationText((end ?? now) - start, common)}
    </span>
  );
}
