import { describe, expect, it } from 'vitest';
import { best, score, withoutLogWord, wordsOf } from './search.ts';

const find = (items: string[], query: string, most = 10) => best(items, wordsOf(query), (item) => item, most);

describe('the search of the palette', () => {
  it('puts whole names before beginnings, beginnings before later words, those before the rest', () => {
    expect(find(['remnist', 'my-mnist', 'mnist-2', 'mnist'], 'MNIST')).toEqual(['mnist', 'mnist-2', 'my-mnist', 'remnist']);
  });

  it('wants every word, in any order', () => {
    expect(find(['bert-large', 'bert-small', 'large'], ' large  bert ')).toEqual(['bert-large']);
    expect(score('bert', ['bert', 'x'])).toBeNull();
  });

  it('keeps the order and the bound where nothing is typed', () => {
    expect(find(['c', 'a', 'b'], '  ', 2)).toEqual(['c', 'a']);
  });

  it('takes signs of regular expressions as they are', () => {
    expect(find(['a.b', 'axb', 'a(b'], 'a.b')).toEqual(['a.b']);
    expect(find(['a.b', 'a(b'], '(')).toEqual(['a(b']);
  });
});

it('asks for logs with a word of either language', () => {
  expect(withoutLogWord(wordsOf('Logs mnist'), ['logs', '日志'])).toEqual(['mnist']);
  expect(withoutLogWord(wordsOf('mnist 日志'), ['logs', '日志'])).toEqual(['mnist']);
  expect(withoutLogWord(wordsOf('mnist'), ['logs'])).toBeNull();
  expect(withoutLogWord(wordsOf('logs'), ['logs'])).toBeNull();
});
