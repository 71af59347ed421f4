/** A command line as a list of words, split as a shell does it: quotes hold words together, nothing is expanded. */

export interface Split {
  words: string[];
  /** A quote that is not closed. */
  open: '' | '"' | "'";
}

export function splitWords(line: string): Split {
  const words: string[] = [];
  let word: string | null = null;
  let quote: Split['open'] = '';
  for (let index = 0; index < line.length; index++) {
    const letter = line[index]!;
    const next = line[index + 1];
    if (quote !== '') {
      if (letter === quote) quote = '';
      else if (letter === '\\' && quote === '"' && next !== undefined && '"\\'.includes(next)) word += line[++index]!;
      else word += letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= '';
    } else if (letter === '\\' && next !== undefined) word = (word ?? '') + line[++index]!;
    else if (/\s/.test(letter)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + letter;
  }
  if (word !== null) words.push(word);
  return { words, open: quote };
}

export function joinWords(words: readonly string[]): string {
  return words.map(quoteWord).join(' ');
}

function quoteWord(word: string): string {
  if (word !== '' && /^[^\s"'\\]+$/.test(word)) return word;
  return word.includes("'") ? `"${word.replace(/(["\\])/g, '\\$1')}"` : `'${word}'`;
}
