/** What a waiting job lacks, read from the scheduler's sentence as presentation/failure_advice.py does. */
export interface Shortage {
  resource: string;
  asked: string;
  free: string;
  total: string;
}

const SHORTAGE = /Insufficient ([\w./-]*\w)(?: \((\S+) asked, (\S+) of (\S+) free\))?/g;

export function shortagesIn(sentence: string): Shortage[] {
  return [...sentence.matchAll(SHORTAGE)].map(([, resource = '', asked = '', free = '', total = '']) => ({ resource, asked, free, total }));
}
