/** Which entries of the command palette match what was typed, the best first. */

/** Split a query into words, in lower case. */
export function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter((word) => word !== '');
}

/** How well a text matches: the smaller the better; `null` if a word does not occur. */
export function score(text: string, words: readonly string[]): number | null {
  const lower = text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const at = lower.indexOf(word);
    if (at < 0) return null;
    sum += lower === word ? 0 : at === 0 ? 1 : /[\s\-_./]/.test(lower[at - 1] ?? '') ? 2 : 3;
  }
  return sum;
}

/** The best matches, at most `most`; equal ones keep their order. Without words these are the first ones. */
export function best<T>(items: readonly T[], words: readonly string[], textOf: (item: T) => string, most: number): T[] {
  if (words.length === 0) return items.slice(0, most);
  const matches: { item: T; score: number }[] = [];
  for (const item of items) {
    const value = score(textOf(item), words);
    if (value !== null) matches.push({ item, score: value });
  }
  return matches.sort((one, other) => one.score - other.score).slice(0, most).map(({ item }) => item);
}

/**
 * The words without one that asks for logs (`logs mnist`, `日志 mnist`); `null` if none does, or nothing is left to look for.
 */
export function withoutLogWord(words: readonly string[], names: readonly string[]): string[] | null {
  const index = words.findIndex((word) => names.some((name) => name.toLowerCase() === word));
  return index < 0 || words.length === 1 ? null : words.filter((_, place) => place !== index);
}
