// Time stamps of log lines: RFC 3339 with up to nine digits, as `kubectl logs --timestamps` writes them.
//
// A time is a number of nanoseconds since `origin` (a second since 1970): exact within 104 days of it, where
// nanoseconds since 1970 would not fit into a double.

/** The longest stamp, with the space behind it. */
export const MAX_STAMP = 36;

const NANO = 1e9;

function digits(data: Uint8Array, from: number, count: number): number {
  let value = 0;
  for (let index = from; index < from + count; index++) {
    const digit = data[index]! - 48;
    if (digit < 0 || digit > 9 || digit !== digit) return NaN;
    value = value * 10 + digit;
  }
  return value;
}

/** Days from 1970-01-01 to a date of the Gregorian calendar, by arithmetic alone: `Date.UTC` is too slow for each line. */
function dayOf(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719468;
}

/** Reads stamps without making an object for each. */
export class StampReader {
  /** Of the last stamp read: its time, and its length with the space behind it. */
  time = NaN;
  length = 0;

  constructor(readonly origin: number) {}

  /** Return whether a stamp and a space (or the line's end) begin at `from`. */
  read(data: Uint8Array, from: number, end: number): boolean {
    if (end - from < 20 || data[from + 4] !== 45 || data[from + 10] !== 84) return false;
    const day = dayOf(digits(data, from, 4), digits(data, from + 5, 2), digits(data, from + 8, 2));
    const clock = digits(data, from + 11, 2) * 3600 + digits(data, from + 14, 2) * 60 + digits(data, from + 17, 2);
    let at = from + 19;
    let fraction = 0;
    if (data[at] === 46) {
      let scale = NANO;
      for (at++; at < end && data[at]! >= 48 && data[at]! <= 57 && scale > 1; at++) {
        scale /= 10;
        fraction += (data[at]! - 48) * scale;
      }
    }
    const zone = this.#zone(data, at, end);
    at += data[at] === 90 ? 1 : 6;
    const time = (day * 86400 + clock - zone - this.origin) * NANO + fraction;
    if (time !== time || at > end || (at < end && data[at] !== 32)) return false;
    this.time = time;
    this.length = Math.min(at + 1, end) - from;
    return true;
  }

  #zone(data: Uint8Array, at: number, end: number): number {
    if (data[at] === 90) return 0;
    const sign = data[at] === 43 ? 1 : data[at] === 45 ? -1 : NaN;
    return at + 6 > end ? NaN : sign * (digits(data, at + 1, 2) * 3600 + digits(data, at + 4, 2) * 60);
  }
}

/** Return a time as RFC 3339 in UTC with nine digits. */
export function formatStamp(time: number, origin: number): string {
  const second = Math.floor(time / NANO);
  const fraction = Math.round(time - second * NANO);
  const date = new Date((second + origin) * 1000);
  return `${date.toISOString().slice(0, 19)}.${String(fraction).padStart(9, '0')}Z`;
}

/** Return the time of a stamp's text; NaN if it is none. */
export function parseStamp(text: string, origin: number): number {
  const reader = new StampReader(origin);
  const data = new TextEncoder().encode(text.trim());
  return reader.read(data, 0, data.length) ? reader.time : NaN;
}
