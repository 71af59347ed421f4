import { describe, expect, it } from 'vitest';
import { PIECE_BYTES } from './buffer.ts';
import type { Frame, FromWorker, ToWorker, ViewSpec } from './messages.ts';
import { LogSession, SHOWN_CHARACTERS } from './session.ts';
import { formatStamp } from './stamps.ts';
import { encode, ORIGIN, stamped } from './testing.ts';

const SPEC: ViewSpec = {
  logs: [1],
  query: { text: '', isRegex: false, matchCase: false },
  onlyMatching: false,
  context: 0,
  level: 0,
  from: '',
  to: '',
};

/** A session with one view of log 1, and everything that it posted. */
function start(limit?: number) {
  const posted: FromWorker[] = [];
  const session = new LogSession((message) => posted.push(message), ORIGIN, limit);
  const send = (...messages: ToWorker[]) => messages.forEach((message) => session.receive(message));
  const run = () => {
    session.receive({ type: 'drawn', view: 1 });
    while (session.hasWork) {
      session.scan(() => true);
      session.tick();
      session.receive({ type: 'drawn', view: 1 });
    }
  };
  const frame = (): Frame => {
    run();
    return posted.filter((message): message is Frame => message.type === 'frame').at(-1)!;
  };
  const write = (log: number, text: string) => send({ type: 'bytes', log, bytes: encode(text), receipt: 0 });
  const texts = () => frame().rows.map((row) => row.segments.map((segment) => segment.text).join(''));
  send({ type: 'open', log: 1 }, { type: 'view', view: 1, spec: SPEC });
  send({ type: 'viewport', view: 1, request: 1, from: 0, count: 5, anchor: 0, isFollowing: true });
  return { session, posted, send, run, frame, write, texts };
}

/** Three lines have one stamp. */
const numbered = (from: number, end: number) =>
  Array.from({ length: end - from }, (_, index) => stamped(Math.floor((from + index) / 3) * 1000, `line ${from + index}`)).join('');

describe('a session', () => {
  it('follows the end of a log', () => {
    const { write, texts, frame } = start();
    write(1, numbered(0, 100));
    expect(texts()).toEqual(['line 95', 'line 96', 'line 97', 'line 98', 'line 99']);
    write(1, numbered(100, 101));
    expect(texts().at(-1)).toBe('line 100');
    expect(frame()).toMatchObject({ total: 101, from: 96, isFollowing: true });
  });

  it('keeps the line at the top while earlier lines of another log come in, and while lines are filtered', () => {
    const { send, write, texts, frame } = start();
    send({ type: 'open', log: 2 }, { type: 'view', view: 1, spec: { ...SPEC, logs: [1, 2] } });
    write(1, numbered(100, 200));
    frame();
    send({ type: 'viewport', view: 1, request: 1, from: 50, count: 2, anchor: 50, isFollowing: false });
    expect(texts()).toEqual(['line 150', 'line 151']);
    write(2, numbered(0, 40));
    expect(texts()).toEqual(['line 150', 'line 151']);
    send({ type: 'view', view: 1, spec: { ...SPEC, logs: [1, 2], query: { ...SPEC.query, text: '5' }, onlyMatching: true } });
    expect(texts()).toEqual(['line 150', 'line 151']);
    expect(frame().total).toBe(4 + 19);
  });

  it('keeps another line than the top one where it is', () => {
    const { send, write, texts, frame } = start();
    send({ type: 'open', log: 2 }, { type: 'view', view: 1, spec: { ...SPEC, logs: [1, 2] } });
    write(1, numbered(0, 30));
    frame();
    send({ type: 'viewport', view: 1, request: 1, from: 8, count: 5, anchor: 10, isFollowing: false });
    write(2, stamped(3000, 'between') + stamped(3000, 'between'));
    expect(texts()[2]).toBe('line 10');
    write(2, stamped(3001, 'behind'));
    expect(texts()[2]).toBe('line 10');
    expect(frame()).toMatchObject({ from: 8, anchor: 10 });
  });

  it('finds hits forward, backward and around the end', () => {
    const { send, write, posted, frame } = start();
    write(1, numbered(0, 100));
    send({ type: 'view', view: 1, spec: { ...SPEC, query: { ...SPEC.query, text: '7' } } });
    expect(frame().hits).toBe(19);
    const seek = (row: number, direction: 1 | -1) => {
      send({ type: 'seek', view: 1, id: 1, target: { kind: 'hit', row, direction } });
      return posted.at(-1);
    };
    expect(seek(7, 1)).toMatchObject({ row: 17, hit: 1 });
    expect(seek(17, -1)).toMatchObject({ row: 7, hit: 0 });
    expect(seek(97, 1)).toMatchObject({ row: 7 });
    expect(seek(7, -1)).toMatchObject({ row: 97, hit: 18 });
  });

  it('finds the first traceback, and a line by its stamp', () => {
    const { send, write, posted, frame } = start();
    write(1, numbered(0, 10) + stamped(20_000, 'Traceback (most recent call last):') + stamped(20_000, '  File "x.py"') + stamped(20_000, 'KeyError: 1'));
    send({ type: 'seek', view: 1, id: 1, target: { kind: 'traceback', log: 1 } });
    expect(posted.at(-1)).toMatchObject({ type: 'found', row: 10 });
    expect(frame().rows.map((row) => row.level)).toEqual([0, 0, 3, 2, 2]);
    send({ type: 'seek', view: 1, id: 2, target: { kind: 'line', log: 1, stamp: formatStamp(20_000, ORIGIN), nth: 2 } });
    expect(posted.at(-1)).toMatchObject({ row: 12 });
    send({ type: 'seek', view: 1, id: 3, target: { kind: 'line', log: 1, stamp: formatStamp(20_001, ORIGIN), nth: 0 } });
    expect(posted.at(-1)).toMatchObject({ row: null });
  });

  it('puts the whole log in place of its end, without a gap or a doubled line', () => {
    const { send, write, frame, texts, posted } = start();
    write(1, numbered(50, 100));
    frame();
    send({ type: 'viewport', view: 1, request: 1, from: 10, count: 3, anchor: 10, isFollowing: false }, { type: 'open', log: 2, replaces: 1 });
    write(2, numbered(0, 80));
    expect(texts()).toEqual(['line 60', 'line 61', 'line 62']);
    expect(posted.some((message) => message.type === 'loading')).toBe(true);
    write(1, numbered(100, 110));
    write(2, numbered(80, 110));
    expect(texts()).toEqual(['line 60', 'line 61', 'line 62']);
    expect(posted).toContainEqual({ type: 'replaced', log: 1, by: 2 });
    write(2, numbered(110, 111));
    expect(frame()).toMatchObject({ total: 111, from: 60 });
  });

  it('drops the oldest lines at the limit, over all logs, and says how many', () => {
    const { send, write, frame } = start(8 * PIECE_BYTES);
    send({ type: 'open', log: 2 }, { type: 'view', view: 1, spec: { ...SPEC, logs: [1, 2] } });
    const text = 'x'.repeat(10_000);
    write(2, numbered(0, 1));
    for (let line = 0; line < 2000; line++) write(1 + (line % 2), stamped(1e6 + line, text));
    const { logs, total } = frame();
    expect(logs.reduce((size, log) => size + log.bytes, 0)).toBeLessThanOrEqual(8 * PIECE_BYTES);
    expect(Math.min(...logs.map((log) => log.dropped))).toBeGreaterThan(0);
    expect(logs.reduce((count, log) => count + log.dropped, 0) + total).toBe(2001);
  });

  it('says what is wrong with an expression and shows all lines', () => {
    const { send, write, frame } = start();
    write(1, numbered(0, 3));
    send({ type: 'view', view: 1, spec: { ...SPEC, query: { text: '(', isRegex: true, matchCase: false }, onlyMatching: true } });
    expect(frame()).toMatchObject({ total: 3, hits: 0 });
    expect(frame().error).toContain('Invalid regular expression');
  });

  it('cuts a line of ten megabytes, and gives more of it and its earlier states on request', () => {
    const { send, write, frame, posted } = start();
    write(1, stamped(1, 'x'.repeat(10_000_000)) + stamped(2, '1%\r2%\r3%'));
    expect(frame().rows.map((row) => [row.hidden, row.earlier])).toEqual([[10_000_000 - SHOWN_CHARACTERS, 0], [0, 2]]);
    send({ type: 'line', log: 1, line: 1, id: 5 });
    expect(posted.at(-1)).toMatchObject({ id: 5, states: [[{ text: '1%' }], [{ text: '2%' }], [{ text: '3%' }]], earlier: 0 });
    send({ type: 'line', log: 1, line: 0, id: 6 });
    expect(posted.at(-1)).toMatchObject({ id: 6, text: 'x'.repeat(200_000) });
  });

  it('answers every chunk of bytes, so that the server may send more', () => {
    const { send, posted } = start();
    send({ type: 'bytes', log: 1, bytes: encode('x'), receipt: 42 }, { type: 'bytes', log: 99, bytes: encode('x'), receipt: 43 });
    expect(posted.filter((message) => message.type === 'receipt').map((message) => message.receipt)).toEqual([42, 43]);
  });

  it('sends no frame before the last one is drawn, and then the newest', () => {
    const { session, send, write, posted, frame } = start();
    frame();
    const frames = () => posted.filter((message) => message.type === 'frame').length;
    write(1, numbered(0, 10));
    session.tick();
    const before = frames();
    write(1, numbered(10, 30));
    session.tick();
    expect([frames(), session.hasWork]).toEqual([before, false]);
    send({ type: 'drawn', view: 1 });
    expect(session.hasWork).toBe(true);
    session.tick();
    expect(posted.at(-1)).toMatchObject({ total: 30 });
  });

  it('shows the old view until a large log has been searched', () => {
    const { session, send, write, frame, posted } = start();
    for (let piece = 0; piece < 5; piece++) write(1, stamped(piece, 'y'.repeat(PIECE_BYTES)));
    frame();
    send({ type: 'view', view: 1, spec: { ...SPEC, query: { ...SPEC.query, text: 'z' }, onlyMatching: true } });
    session.scan(() => false);
    session.tick();
    expect(posted.at(-1)).toMatchObject({ total: 5, isSearching: true });
    expect(frame()).toMatchObject({ total: 0, isSearching: false });
  });
});
