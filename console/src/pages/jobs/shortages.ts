/** What a waiting job lacks, read from the scheduler's sentence as presentation/failure_advice.py does. */
export interface Shortage {
  resource: string;
  asked: string;
  free: string;
  total: string;
}

const SHORTAGE = /Insufficient ([\w./-]*\w)(?: \((\S+) asked, (\S+) of (\S+) free\))?/g;

/** A job behind others in the queue: what is free is for those before it, so no amount is given. */
const BEHIND = /waits behind others for ([^;]*)/;
const ASKED = /([\w./-]*\w) \((\S+) asked\)/g;

export function shortagesIn(sentence: string): Shortage[] {
  const lacking = [...sentence.matchAll(SHORTAGE)].map(([, resource = '', asked = '', free = '', total = '']) => ({ resource, asked, free, total }));
  const reserved = BEHIND.exec(sentence)?.[1] ?? '';
  return [...lacking, ...[...reserved.matchAll(ASKED)].map(([, resource = '', asked = '']) => ({ resource, asked, free: '', total: '' }))];
}

/** A resource in the person's words; that of a device is its name everywhere. */
export function resourceName(resource: string, words: Record<string, string>): string {
  return Object.hasOwn(words, resource) ? words[resource]! : resource;
}
