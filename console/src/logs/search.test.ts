import { describe, expect, it } from 'vitest';
import { LogBuffer, PIECE_BYTES } from './buffer.ts';
import { ERROR, levelOf, LevelScanner, NO_LEVEL, TRACEBACK, WARNING } from './levels.ts';
import { compile, Marks, type Query, type Scanner } from './search.ts';
import { encode, logOf, ORIGIN, randomFrom, stamped } from './testing.ts';

const query = (text: string, more: Partial<Query> = {}): Query => ({ text, isRegex: false, matchCase: false, ...more });

function scan(log: LogBuffer, scanner: Scanner): Marks {
  const marks = new Marks(log, scanner);
  while (!marks.advance());
  return marks;
}

function matching(lines: string[], wanted: Query): number[] {
  const log = logOf(lines.map((line, index) => stamped(index, line)).join(''));
  const marks = scan(log, compile(wanted)!);
  return lines.flatMap((_, line) => (marks.at(line) ? [line] : []));
}

const LINES = ['epoch 1 loss 0.5', 'Loss', '', 'a.b', 'axb', '损失 0.5', 'ÜBUNG übung', 'x\x1b[31mlo\x1b[0mss', '2030-01-01', '10%\r100%'];

describe('a search', () => {
  it.each([
    ['loss', {}, [0, 1, 7]],
    ['loss', { matchCase: true }, [0, 7]],
    ['a.b', {}, [3]],
    ['a.b', { isRegex: true }, [3, 4]],
    ['^epoch \\d+', { isRegex: true }, [0]],
    ['0\\.5$', { isRegex: true }, [0, 5]],
    ['^$', { isRegex: true }, [2]],
    ['损失', {}, [5]],
    ['^..\\s0', { isRegex: true }, [5]],
    ['übung', {}, [6]],
    ['2030', {}, [8]],
    ['10%', {}, [9]],
    ['[31m', {}, []],
    ['\\S+', { isRegex: true }, [0, 1, 3, 4, 5, 6, 7, 8, 9]],
  ] as [string, Partial<Query>, number[]][])('for %j %j finds lines %j', (text, more, lines) => {
    expect(matching(LINES, query(text, more))).toEqual(lines);
  });

  it('finds nothing in stamps, only in text', () => {
    expect(matching(['quiet', '00:00:00'], query('00:00:00'))).toEqual([1]);
  });

  it('agrees with a search of each line by itself, over pieces and chunks', () => {
    const random = randomFrom(11);
    const words = ['loss', 'Loss', 'acc', '损失', '\x1b[1m', 'é', ' ', '.', '0'];
    const lines = Array.from({ length: 4000 }, () => Array.from({ length: Math.floor(random() * 9) }, () => words[Math.floor(random() * words.length)]!).join(''));
    const padded = lines.map((line) => line + ' '.repeat(Math.floor(PIECE_BYTES / 1000)));
    const log = new LogBuffer(ORIGIN);
    const marksOf = new Map<Query, Marks>();
    const queries = [query('loss'), query('loss', { matchCase: true }), query('l?oss|0{2}', { isRegex: true }), query('é'), query('^(?! )', { isRegex: true })];
    for (const one of queries) marksOf.set(one, new Marks(log, compile(one)!));
    padded.forEach((line, index) => {
      log.append(encode(stamped(index, line)));
      if (index % 97 === 0) for (const marks of marksOf.values()) while (!marks.advance());
    });
    expect(log.pieces.length).toBeGreaterThan(3);
    for (const [one, marks] of marksOf) {
      while (!marks.advance());
      const source = one.isRegex ? one.text : one.text.replace(/\./g, '\\.');
      const expression = new RegExp(source, one.matchCase ? 'u' : 'iu');
      padded.forEach((line, index) =>
        expect(marks.at(index) === 1, `${one.text} in ${line.trim()}`).toBe(expression.test(line.replace(/\x1b\[1m/g, ''))),
      );
    }
  });

  it('follows a log that loses lines', () => {
    const log = new LogBuffer(ORIGIN);
    const marks = new Marks(log, compile(query('7'))!);
    for (let line = 0; line < 400; line++) log.append(encode(stamped(line, `${line}${' '.repeat(PIECE_BYTES / 100)}`)));
    while (!marks.advance());
    log.drop();
    log.append(encode(stamped(400, '777')));
    while (!marks.advance());
    for (let line = log.first; line < log.end; line++) expect(marks.at(line) === 1).toBe(String(line === 400 ? 777 : line).includes('7'));
  });

  it('says what is wrong with an expression', () => {
    expect(() => compile(query('(', { isRegex: true }))).toThrow(SyntaxError);
    expect(compile(query(''))).toBeNull();
  });

  it('tells where a line matches', () => {
    expect(compile(query('o'))!.ranges('foo Oh')).toEqual([1, 2, 2, 3, 4, 5]);
    expect(compile(query('x*', { isRegex: true }))!.ranges('axxb')).toEqual([1, 3]);
  });
});

describe('the level of a line', () => {
  it.each([
    ['[2030-01-01 12:00:00] ERROR worker: lost', ERROR],
    ['ModuleNotFoundError: No module named torch', ERROR],
    ['torch.cuda.OutOfMemoryError: CUDA out of memory', ERROR],
    ['E0101 12:00:00.000000 1 x.cc:3] bad', ERROR],
    ['panic: runtime error', ERROR],
    ['time=x level=error msg=y', ERROR],
    ['Traceback (most recent call last):', TRACEBACK],
    ['[rank0]: Traceback (most recent call last):', TRACEBACK],
    ['UserWarning: this is old', WARNING],
    ['WARN low memory', WARNING],
    ['WARNING:tensorflow:From x', WARNING],
    ['W0101 12:00:00.000000 1 x.cc:3] hm', WARNING],
    ['0 errors, 0 warnings', NO_LEVEL],
    ['mean squared error 0.5', NO_LEVEL],
    ['epoch 1', NO_LEVEL],
  ])('%j is %i', (line, level) => expect(levelOf(line)).toBe(level));

  it('is an error for all lines of a traceback, and not for those around it', () => {
    const lines = [
      'epoch 1', 'Traceback (most recent call last):', '  File "a.py", line 1, in <module>', '    import x', "KeyError: 'x'", 'epoch 2',
      '[rank1]: Traceback (most recent call last):', '[rank1]:   File "b.py"', '[rank1]: ValueError', 'epoch 3',
    ];
    const levels = [0, 3, 2, 2, 2, 0, 3, 2, 2, 0];
    const whole = scan(logOf(lines.map((line, index) => stamped(index, line)).join('')), new LevelScanner());
    expect(lines.map((_, line) => whole.at(line))).toEqual(levels);
    const log = new LogBuffer(ORIGIN);
    const marks = new Marks(log, new LevelScanner());
    lines.forEach((line, index) => {
      log.append(encode(stamped(index, line)));
      while (!marks.advance());
    });
    expect(lines.map((_, line) => marks.at(line))).toEqual(levels);
  });
});
