import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Live, LiveStore, lastStamp, type Socket } from './live.ts';
import { COLUMNS, type Row } from './rows.ts';

/** A server's end of the socket: what was sent, and ways to answer. */
class TestSocket implements Socket {
  binaryType = '';
  readyState = 0;
  onopen: Socket['onopen'] = null;
  onclose: Socket['onclose'] = null;
  onmessage: Socket['onmessage'] = null;
  readonly sent: Record<string, unknown>[] = [];

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close(): void {
    this.readyState = 3;
    this.onclose?.({} as CloseEvent);
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.({} as Event);
  }
  say(message: Record<string, unknown>): void {
    this.onmessage?.({ data: JSON.stringify(message) } as MessageEvent);
  }
  sayBytes(id: number, sort: number, bytes: Uint8Array): void {
    const frame = new Uint8Array(5 + bytes.length);
    new DataView(frame.buffer).setUint32(0, id);
    frame[4] = sort;
    frame.set(bytes, 5);
    this.onmessage?.({ data: frame.buffer } as MessageEvent);
  }
}

let sockets: TestSocket[];
let live: Live;
const refused = vi.fn();

function socket(): TestSocket {
  const last = sockets.at(-1);
  if (last === undefined) throw new Error('no socket was opened');
  return last;
}

function row(uid: string, name = uid): unknown[] {
  return COLUMNS.map((column) => (column === 'uid' ? uid : column === 'name' ? name : ''));
}

function names(store: LiveStore<Row[]>): string[] | undefined {
  return store.snapshot.data?.map(({ name }) => name);
}

beforeEach(() => {
  vi.useFakeTimers();
  refused.mockClear();
  sockets = [];
  live = new Live({
    connect: () => {
      sockets.push(new TestSocket());
      return socket();
    },
    random: () => 0.5,
    onRefused: refused,
  });
  live.start();
});

afterEach(() => {
  live.stop();
  vi.useRealTimers();
});

const rows = () => new LiveStore<Row[]>({ type: 'rows', resource: 'jobs', namespace: 'default' });

test('what is asked for before the socket opens is sent when it does', () => {
  live.subscribe(rows());
  expect(socket().sent).toEqual([]);
  socket().open();
  expect(socket().sent).toEqual([{ id: 1, type: 'rows', resource: 'jobs', namespace: 'default' }]);
  expect(live.state).toBe('live');
});

test('rows are added, replaced and removed, and shown when all of an answer is there', () => {
  const store = rows();
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'rows', rows: [row('a')], more: true, revision: '5' });
  expect(store.snapshot.data).toBeUndefined();
  socket().say({ id: 1, type: 'rows', rows: [row('b')], more: false, revision: '5' });
  socket().say({ id: 1, type: 'rows', rows: [row('b', 'b2')], deleted: ['a'], revision: '6' });
  expect(names(store)).toEqual(['b2']);
  expect(store.snapshot.revision).toBe('6');
});

test('after a cut a list goes on from its last revision, and keeps its rows meanwhile', () => {
  const store = rows();
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'rows', rows: [row('a')], revision: '5' });
  socket().close();
  expect(live.state).toBe('lost');
  expect(names(store)).toEqual(['a']);
  vi.advanceTimersByTime(500);
  socket().open();
  expect(sockets).toHaveLength(2);
  expect(socket().sent).toEqual([{ id: 1, type: 'rows', resource: 'jobs', namespace: 'default', since: '5' }]);
  socket().say({ id: 1, type: 'rows', rows: [row('b')], revision: '7' });
  expect(names(store)).toEqual(['a', 'b']);
});

test('a cut in the middle of the first answer begins it again', () => {
  const store = rows();
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'rows', rows: [row('a')], more: true, revision: '5' });
  socket().close();
  vi.advanceTimersByTime(500);
  socket().open();
  expect(socket().sent[0]).not.toHaveProperty('since');
  socket().say({ id: 1, type: 'rows', rows: [row('b')], revision: '7' });
  expect(names(store)).toEqual(['b']);
});

test('a reset replaces the list, and does not empty it before the new one is there', () => {
  const store = rows();
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'rows', rows: [row('a')], revision: '5' });
  socket().say({ id: 1, type: 'reset' });
  expect(names(store)).toEqual(['a']);
  socket().say({ id: 1, type: 'rows', rows: [row('b')], revision: '9' });
  expect(names(store)).toEqual(['b']);
});

test('it tries again after 0.5, 1, 2, 4, 8 and then every 15 seconds', () => {
  const waits = [];
  for (let attempt = 0; attempt < 7; attempt += 1) {
    const count = sockets.length;
    socket().close();
    let waited = 0;
    while (sockets.length === count) {
      vi.advanceTimersByTime(100);
      waited += 100;
    }
    waits.push(waited);
  }
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000]);
  expect(refused).toHaveBeenCalledTimes(7);
});

test('a server that says nothing for 20 seconds is lost, a ping keeps it', () => {
  socket().open();
  vi.advanceTimersByTime(15_000);
  socket().say({ type: 'ping', time: 1 });
  vi.advanceTimersByTime(15_000);
  expect(live.state).toBe('live');
  vi.advanceTimersByTime(5_000);
  expect(live.state).toBe('lost');
});

test('a hidden page says so after a minute, and at once when it is seen again', () => {
  socket().open();
  live.visibility(true);
  vi.advanceTimersByTime(15_000);
  expect(socket().sent).toEqual([]);
  for (let second = 0; second < 50; second += 10) {
    socket().say({ type: 'ping', time: second });
    vi.advanceTimersByTime(10_000);
  }
  expect(socket().sent).toEqual([{ type: 'hide' }]);
  live.visibility(false);
  expect(socket().sent).toEqual([{ type: 'hide' }, { type: 'show' }]);
});

test('gzipped messages are unpacked, and what follows waits for them', async () => {
  vi.useRealTimers();
  const store = rows();
  live.subscribe(store);
  socket().open();
  const packed = gzipSync(JSON.stringify({ id: 1, type: 'rows', rows: [row('a', 'old')], revision: '5' }));
  socket().sayBytes(1, 1, packed);
  socket().say({ id: 1, type: 'rows', rows: [row('a', 'new')], revision: '6' });
  await vi.waitFor(() => expect(store.snapshot.revision).toBe('6'));
  expect(names(store)).toEqual(['new']);
});

test('an error reaches its subscription, and a later answer takes it back', () => {
  const store = new LiveStore<{ title: string }>({ type: 'view', of: 'job', name: 'x' });
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'error', error: { code: 403, reason: 'Forbidden', message: 'no' } });
  expect(store.snapshot.error).toMatchObject({ code: 403, reason: 'Forbidden', message: 'no' });
  socket().say({ id: 1, type: 'view', view: { title: 'x' }, revision: '3' });
  expect(store.snapshot).toMatchObject({ data: { title: 'x' }, error: undefined, revision: '3' });
});

test('a cluster that the console cannot hear makes a subscription stale until it is heard again', () => {
  const store = rows();
  live.subscribe(store);
  socket().open();
  socket().say({ id: 1, type: 'stale', since: '2030-01-01T00:00:00Z' });
  expect(store.snapshot.staleSince).toBe(Date.parse('2030-01-01T00:00:00Z'));
  socket().say({ id: 1, type: 'fresh' });
  expect(store.snapshot.staleSince).toBeUndefined();
});

test('whoever leaves is not sent anything more', () => {
  const store = rows();
  const leave = live.subscribe(store);
  socket().open();
  leave();
  expect(socket().sent.at(-1)).toEqual({ id: 1, type: 'unsubscribe' });
  socket().say({ id: 1, type: 'rows', rows: [row('a')], revision: '5' });
  expect(store.snapshot.data).toBeUndefined();
});

const line = (stamp: string, text: string) => `2030-01-01T00:00:0${stamp}Z ${text}\n`;
const bytes = (text: string) => new TextEncoder().encode(text);

test('a log goes on after a cut from the stamp of its last whole line', () => {
  live.subscribeLog({ namespace: 'default', pod: 'p', container: 'c', follow: true, tail: 10 }, () => {}, () => {});
  socket().open();
  socket().sayBytes(1, 0, bytes(line('1.5', 'one') + line('2.25', 'two') + '2030-01-01T00:00:03Z thr'));
  socket().close();
  vi.advanceTimersByTime(500);
  socket().open();
  expect(socket().sent[0]).toMatchObject({ id: 1, type: 'log', pod: 'p', after: '2030-01-01T00:00:02.25Z' });
});

test('the server gets new credit when the page has taken the bytes, not before', async () => {
  let taken = () => {};
  const waiting = new Promise<void>((resolve) => (taken = resolve));
  live.subscribeLog({ namespace: 'default', pod: 'p', container: 'c' }, () => waiting, () => {});
  socket().open();
  const chunk = bytes(line('1', 'x'.repeat(300_000)));
  socket().sayBytes(1, 0, chunk);
  expect(socket().sent).toHaveLength(1);
  taken();
  await waiting;
  await Promise.resolve();
  expect(socket().sent[1]).toEqual({ id: 1, type: 'credit', bytes: chunk.length });
});

test('the end of a log comes with its exit code, once', () => {
  const ended = vi.fn();
  live.subscribeLog({ namespace: 'default', pod: 'p', container: 'c' }, () => {}, ended);
  socket().open();
  socket().say({ id: 1, type: 'end', exitCode: 3 });
  socket().say({ id: 1, type: 'end', exitCode: 3 });
  expect(ended.mock.calls).toEqual([[{ exitCode: 3 }]]);
});

test('the last stamp is that of the last line that has one', () => {
  expect(lastStamp(bytes(line('1', 'a') + line('2', 'b')))).toBe('2030-01-01T00:00:02Z');
  expect(lastStamp(bytes(`${line('1', 'a')}no stamp here\n`))).toBe('2030-01-01T00:00:01Z');
  expect(lastStamp(bytes('nothing\n'))).toBeUndefined();
});
