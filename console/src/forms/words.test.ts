import { describe, expect, it } from 'vitest';
import { joinWords, splitWords } from './words.ts';

describe('splitting a line into words', () => {
  it.each([
    ['', []],
    ['  a   b ', ['a', 'b']],
    ['torch.py "--save_path=model.pt" "--log_dir=log"', ['torch.py', '--save_path=model.pt', '--log_dir=log']],
    ["sh -c 'echo \"hi\"; exit 1'", ['sh', '-c', 'echo "hi"; exit 1']],
    ['--name="two words"x', ['--name=two wordsx']],
    ['a\\ b "c\\"d" "e\\n"', ['a b', 'c"d', 'e\\n']],
    ["'' \"\"", ['', '']],
    ['$(MASTER_ADDR):$(PORT) *', ['$(MASTER_ADDR):$(PORT)', '*']],
    ['训练 "两 词"', ['训练', '两 词']],
    ['one\ntwo', ['one', 'two']],
  ])('%j', (line, words) => expect(splitWords(line)).toEqual({ words, open: '' }));

  it('notices a quote that is not closed', () => {
    expect(splitWords('a "b c').open).toBe('"');
    expect(splitWords("a 'b").open).toBe("'");
  });

  it.each([[['a', 'b c', '', "it's", 'say "hi"', 'back\\slash', `both ' and "`, 'multi\nline', '训 练']]])('joins what it splits', (words) => {
    expect(splitWords(joinWords(words))).toEqual({ words, open: '' });
  });
});
