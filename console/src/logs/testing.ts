// Made-up logs for tests and measurements.

import { LogBuffer } from './buffer.ts';
import { formatStamp } from './stamps.ts';

export const ORIGIN = Date.UTC(2030, 0, 1) / 1000;

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A generator of numbers from 0 to 1 that gives the same ones for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A line as the wire has it: `time` nanoseconds after ORIGIN. */
export function stamped(time: number, text: string): string {
  return `${formatStamp(time, ORIGIN)} ${text}\n`;
}

export function logOf(...chunks: (string | Uint8Array)[]): LogBuffer {
  const log = new LogBuffer(ORIGIN);
  for (const chunk of chunks) log.append(typeof chunk === 'string' ? encode(chunk) : chunk);
  return log;
}

export function linesOf(log: LogBuffer): string[] {
  const lines: string[] = [];
  for (let line = log.first; line < log.end; line++) lines.push(new TextDecoder().decode(log.bytes(line)));
  return lines;
}
