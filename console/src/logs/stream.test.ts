import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Live, type Socket } from '../app/live.ts';
import { LogClient, nextNumber, type WorkerPort } from './client.ts';
import type { Frame } from './messages.ts';
import { LogSession } from './session.ts';
import { LogStream, type LogSource } from './stream.ts';
import { encode, ORIGIN, randomFrom, stamped } from './testing.ts';

const SOURCE: LogSource = { namespace: 'default', pod: 'job-worker-0', uid: 'u', container: 'pytorch', replica: 'worker-0', attempt: 0, color: 0, ended: false };

interface Request {
  id: number;
  type: string;
  tail?: number;
  after?: string;
}

/** A console that has one log: every line it ever had, and how to cut its connections. */
class FakeConsole {
  lines: string[] = [];
  hasEnded = false;
  requests: Request[] = [];
  sockets: FakeSocket[] = [];

  connect = (): Socket => {
    const socket = new FakeSocket(this);
    this.sockets.push(socket);
    return socket;
  };

  /** The log from where a request asks for it: inclusive, since many lines may have one stamp. */
  bytesFor({ tail, after }: Request): Uint8Array {
    if (after !== undefined) return encode(this.lines.filter((line) => line.slice(0, line.indexOf(' ')) >= after).join(''));
    return encode(this.lines.slice(tail === undefined ? 0 : -tail).join(''));
  }
}

class FakeSocket implements Socket {
  binaryType = '';
  readyState = 0;
  onopen: Socket['onopen'] = null;
  onclose: Socket['onclose'] = null;
  onmessage: Socket['onmessage'] = null;
  /** Of each subscription, what has not been sent yet. */
  readonly waiting = new Map<number, Uint8Array>();

  constructor(readonly server: FakeConsole) {
    queueMicrotask(() => {
      this.readyState = 1;
      this.onopen?.({} as Event);
    });
  }

  send(text: string): void {
    const request = JSON.parse(text) as Request;
    if (request.type === 'unsubscribe') this.waiting.delete(request.id);
    if (request.type !== 'log') return;
    this.server.requests.push(request);
    this.waiting.set(request.id, this.server.bytesFor(request));
  }

  close(): void {
    this.readyState = 3;
    this.onclose?.({} as CloseEvent);
  }

  /** Send the next bytes of every log, and the end of a log that has ended. */
  pump(size: number): void {
    for (const [id, bytes] of this.waiting) {
      const part = bytes.subarray(0, size);
      this.waiting.set(id, bytes.subarray(size));
      if (part.length > 0) this.#deliver(id, part);
      else if (this.server.hasEnded && this.waiting.delete(id)) this.onmessage?.({ data: JSON.stringify({ id, type: 'end', exitCode: 3 }) } as MessageEvent);
    }
  }

  #deliver(id: number, part: Uint8Array): void {
    const frame = new Uint8Array(part.length + 5);
    new DataView(frame.buffer).setUint32(0, id);
    frame.set(part, 5);
    this.onmessage?.({ data: frame.buffer } as MessageEvent);
  }
}

/** A pane without a page: stream, client, and the worker's session in this thread. */
function open(server: FakeConsole, tail?: number, source = SOURCE) {
  let session: LogSession;
  const worker: WorkerPort = {
    onmessage: null,
    postMessage: (message) => session.receive(message),
    terminate: () => undefined,
  };
  session = new LogSession((data) => worker.onmessage?.({ data }), ORIGIN);
  const client = new LogClient(worker);
  const live = new Live({ connect: server.connect, random: () => 0.5 });
  live.start();
  const stream = new LogStream(source, client, live, () => undefined);
  const view = nextNumber();
  let frame: Frame | null = null;
  client.onFrame(view, (next) => {
    frame = next;
  });
  client.setView(view, { logs: [stream.log], query: { text: '', isRegex: false, matchCase: false }, onlyMatching: false, context: 0, level: 0, from: '', to: '' });
  client.setViewport(view, { request: 1, from: 0, count: 100_000, anchor: 0, isFollowing: false });
  const texts = () => {
    client.drawn(view);
    while (session.hasWork) {
      session.scan(() => true);
      session.tick();
      client.drawn(view);
    }
    client.setViewport(view, { request: 1, from: 0, count: 100_000, anchor: 0, isFollowing: false });
    client.drawn(view);
    return frame!.rows.map((row) => row.segments.map((segment) => segment.text).join(''));
  };
  stream.start(tail);
  return { stream, texts, live };
}

const flush = () => vi.advanceTimersByTimeAsync(0);
/** Chunks of output, all lines of one with the same stamp, as the node writes them. */
const logLines = (count: number) => Array.from({ length: count }, (_, line) => stamped(Math.floor(line / 7) * 1e6, `line ${line}`));
const numbers = (count: number, from = 0) => Array.from({ length: count - from }, (_, index) => `line ${index + from}`);

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('a log over the wire', () => {
  it('has no gap and no doubled line, wherever its connections are cut', async () => {
    const random = randomFrom(9);
    for (let round = 0; round < 25; round++) {
      const server = new FakeConsole();
      server.lines = logLines(300);
      const { stream, texts, live } = open(server);
      await flush();
      for (let cut = 0; cut < 6; cut++) {
        for (let step = 0; step < 5; step++) server.sockets.at(-1)!.pump(1 + Math.floor(random() * 700));
        server.sockets.at(-1)!.close();
        await vi.advanceTimersByTimeAsync(20_000);
      }
      server.hasEnded = true;
      stream.isEnded = true;
      while (stream.state.phase !== 'ended') server.sockets.at(-1)!.pump(5000);
      expect(texts()).toEqual(numbers(300));
      expect(stream.state.exitCode).toBe(3);
      stream.stop();
      live.stop();
    }
  });

  it('begins with its last lines, and loads everything in their place, over a cut', async () => {
    const server = new FakeConsole();
    server.lines = logLines(500);
    const { stream, texts, live } = open(server, 50);
    await flush();
    server.sockets.at(-1)!.pump(1e6);
    expect(texts()).toEqual(numbers(500, 450));
    stream.loadEverything();
    server.sockets.at(-1)!.pump(5000);
    expect(texts()).toEqual(numbers(500, 450));
    expect(stream.state.loading).toBeGreaterThan(0);
    server.sockets.at(-1)!.close();
    await vi.advanceTimersByTimeAsync(20_000);
    server.sockets.at(-1)!.pump(1e6);
    expect(texts()).toEqual(numbers(500));
    expect(stream.state).toMatchObject({ isWhole: true, loading: null });
    live.stop();
  });

  it('waits for a container that has not started', async () => {
    const server = new FakeConsole();
    const { stream, texts, live } = open(server, 50);
    await flush();
    const { id } = server.requests[0]!;
    server.sockets[0]!.onmessage!({ data: JSON.stringify({ id, type: 'error', error: { code: 400, reason: 'BadRequest', message: 'waiting to start' } }) } as MessageEvent);
    expect(stream.state.phase).toBe('waiting');
    server.lines = logLines(3);
    await vi.advanceTimersByTimeAsync(5000);
    server.sockets[0]!.pump(1e6);
    expect(texts()).toEqual(numbers(3));
    live.stop();
  });

  it('says so when it may not be read', async () => {
    const server = new FakeConsole();
    const { stream, live } = open(server);
    await flush();
    const { id } = server.requests[0]!;
    server.sockets[0]!.onmessage!({ data: JSON.stringify({ id, type: 'error', error: { code: 403, reason: 'Forbidden', message: 'no' } }) } as MessageEvent);
    expect(stream.state).toMatchObject({ phase: 'failed', error: { code: 403 } });
    live.stop();
  });
});
