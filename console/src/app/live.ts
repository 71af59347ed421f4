/**
 * The one WebSocket of this tab: rows, objects, views and logs, each a subscription that resumes after a cut.
 *
 * A cut is invisible to subscribers but for `state`: the socket is opened again after 0.5, 1, 2 … 15 s with jitter, and every
 * subscription is asked for again from its last revision or, for a log, from the stamp of its last whole line.
 */
import { ApiError } from './api.ts';
import { decodeRow, type Row } from './rows.ts';

export type LiveState = 'connecting' | 'live' | 'lost';

export interface RowsRequest {
  type: 'rows';
  resource: string;
  namespace: string;
}

export interface ObjectsRequest {
  type: 'objects';
  path: string;
}

export interface ViewRequest {
  type: 'view';
  of: string;
  kind?: string;
  namespace?: string;
  name?: string;
}

export interface LogRequest {
  namespace: string;
  pod: string;
  container: string;
  uid?: string;
  follow?: boolean;
  tail?: number;
  after?: string;
  previous?: boolean;
}

/** What the server says to one subscription. */
export interface Message {
  id?: number;
  type: string;
  rows?: unknown[][];
  objects?: unknown[];
  view?: unknown;
  deleted?: string[];
  revision?: string;
  more?: boolean;
  exitCode?: number;
  time?: number;
  since?: string;
  error?: { code: number; reason: string; message: string };
}

export interface LogEnd {
  exitCode?: number;
  error?: ApiError;
}

interface Subscription {
  /** What to send when the socket opens, with where to go on from. */
  request(): Record<string, unknown>;
  onMessage(message: Message): void;
  onBytes?(bytes: Uint8Array): void;
  onCut?(): void;
}

/** A WebSocket as far as Live needs one; tests bring their own. */
export interface Socket {
  binaryType: string;
  readyState: number;
  send(text: string): void;
  close(): void;
  onopen: ((event: Event) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
}

export interface LiveOptions {
  connect: () => Socket;
  random?: () => number;
  /** Called when a connection was refused before it opened: is the session still good? */
  onRefused?: () => void;
}

const DELAYS = [500, 1000, 2000, 4000, 8000, 15000];
const SILENCE = 20_000;
const HIDE_AFTER = 60_000;
const CREDIT = 256 * 1024;
const OPEN = 1;

export class Live {
  state: LiveState = 'connecting';
  /** When the server was last heard, in milliseconds; what a stale page shows is as of then. */
  heardAt = 0;
  private readonly options: LiveOptions;
  private readonly subscriptions = new Map<number, Subscription>();
  private readonly listeners = new Set<() => void>();
  private socket: Socket | null = null;
  private nextId = 1;
  private attempts = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private hiding: ReturnType<typeof setTimeout> | undefined;
  private isHidden = false;
  private isStarted = false;
  private inbox: Promise<void> | null = null;

  constructor(options: LiveOptions) {
    this.options = options;
  }

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    this.open();
  }

  /** Close the socket and forget nothing: `start` goes on where this ended. */
  stop(): void {
    this.isStarted = false;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.attempts = 0;
    for (const subscription of this.subscriptions.values()) subscription.onCut?.();
    this.change('connecting');
  }

  onState(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Tell the server that nobody looks (after a minute), or that somebody does again (at once). */
  visibility(isHidden: boolean): void {
    clearTimeout(this.hiding);
    if (isHidden) {
      this.hiding = setTimeout(() => {
        this.isHidden = true;
        this.send({ type: 'hide' });
      }, HIDE_AFTER);
    } else {
      if (this.isHidden) {
        this.isHidden = false;
        this.send({ type: 'show' });
      }
      if (this.isStarted && this.socket === null) this.reopen();
    }
  }

  subscribe(subscription: Subscription): () => void {
    const id = this.nextId++;
    this.subscriptions.set(id, subscription);
    this.send({ id, ...subscription.request() });
    return () => {
      if (this.subscriptions.delete(id)) this.send({ id, type: 'unsubscribe' });
    };
  }

  /**
   * Read a log. `onBytes` gets lines, each with its stamp in front, and also a line that has not ended, such as a progress bar;
   * after a cut the log goes on with the first line that has the stamp of the last whole one. If `onBytes` returns a promise,
   * the server waits for it.
   * Returns how to stop.
   */
  subscribeLog(
    request: LogRequest,
    onBytes: (bytes: Uint8Array) => void | Promise<void>,
    onEnd: (end: LogEnd) => void,
  ): () => void {
    const lines = new LineBuffer();
    let after = request.after;
    let used = 0;
    let stop = () => {};
    const credit = (bytes: number) => {
      used += bytes;
      if (used < CREDIT) return;
      const id = this.idOf(subscription);
      if (id !== undefined) this.send({ id, type: 'credit', bytes: used });
      used = 0;
    };
    const finish = (end: LogEnd) => {
      stop();
      onEnd(end);
    };
    const subscription: Subscription = {
      request: () => ({ type: 'log', ...request, ...(after === undefined ? {} : { after }) }),
      onBytes: (bytes) => {
        after = lastStamp(lines.take(bytes)) ?? after;
        const done = onBytes(bytes);
        if (done) void done.then(() => credit(bytes.length));
        else credit(bytes.length);
      },
      onMessage: (message) => {
        if (message.type === 'end') finish(message.exitCode === undefined ? {} : { exitCode: message.exitCode });
        else if (message.type === 'error') finish({ error: new ApiError(message.error ?? {}) });
      },
      onCut: () => {
        lines.clear();
        used = 0;
      },
    };
    stop = this.subscribe(subscription);
    return stop;
  }

  private idOf(subscription: Subscription): number | undefined {
    for (const [id, candidate] of this.subscriptions) if (candidate === subscription) return id;
    return undefined;
  }

  private open(): void {
    let isOpen = false;
    const socket = this.options.connect();
    this.socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      if (this.socket !== socket) return;
      isOpen = true;
      this.attempts = 0;
      this.heard();
      for (const [id, subscription] of this.subscriptions) this.send({ id, ...subscription.request() });
      if (this.isHidden) this.send({ type: 'hide' });
    };
    socket.onmessage = (event) => {
      if (this.socket === socket) this.receive(event.data as string | ArrayBuffer, socket);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.lose();
      if (!isOpen) this.options.onRefused?.();
    };
  }

  private lose(): void {
    this.socket = null;
    clearTimeout(this.silence);
    for (const subscription of this.subscriptions.values()) subscription.onCut?.();
    this.change('lost');
    if (!this.isStarted) return;
    const delay = DELAYS[Math.min(this.attempts, DELAYS.length - 1)] ?? 15000;
    this.attempts += 1;
    const jitter = 0.75 + 0.5 * (this.options.random ?? Math.random)();
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.reopen(), delay * jitter);
  }

  private reopen(): void {
    clearTimeout(this.retry);
    if (this.socket === null && this.isStarted) this.open();
  }

  private heard(): void {
    this.heardAt = Date.now();
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      const socket = this.socket;
      if (socket === null) return;
      this.lose();
      socket.close();
    }, SILENCE);
    this.change('live');
  }

  private change(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  private send(message: Record<string, unknown>): void {
    if (this.socket?.readyState === OPEN) this.socket.send(JSON.stringify(message));
  }

  // Frames are handled in order, also while a gzipped one is being unpacked.
  private receive(data: string | ArrayBuffer, socket: Socket): void {
    this.heard();
    const isPacked = typeof data !== 'string' && new Uint8Array(data)[4] === 1;
    if (this.inbox === null && !isPacked) {
      this.dispatch(data);
      return;
    }
    const inbox: Promise<void> = (this.inbox ?? Promise.resolve())
      .then(async () => {
        const frame = isPacked ? await unpack(data as ArrayBuffer) : data;
        if (this.socket === socket) this.dispatch(frame);
      })
      .catch((error: unknown) => console.error('a message of the server cannot be read', error))
      .finally(() => {
        if (this.inbox === inbox) this.inbox = null;
      });
    this.inbox = inbox;
  }

  private dispatch(data: string | ArrayBuffer): void {
    if (typeof data === 'string') {
      const message = JSON.parse(data) as Message;
      if (message.id !== undefined) this.subscriptions.get(message.id)?.onMessage(message);
      return;
    }
    const id = new DataView(data).getUint32(0);
    this.subscriptions.get(id)?.onBytes?.(new Uint8Array(data, 5));
  }
}

async function unpack(data: ArrayBuffer): Promise<string> {
  const packed = new Blob([new Uint8Array(data, 5)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(packed).text();
}

/** Holds back what follows the last line end, so that a cut never leaves half a line. */
export class LineBuffer {
  private pieces: Uint8Array[] = [];

  take(bytes: Uint8Array): Uint8Array {
    const end = bytes.lastIndexOf(10) + 1;
    if (end === 0) {
      this.pieces.push(bytes);
      return new Uint8Array();
    }
    const whole = this.pieces.length === 0 ? bytes.subarray(0, end) : join([...this.pieces, bytes.subarray(0, end)]);
    this.pieces = end < bytes.length ? [bytes.subarray(end)] : [];
    return whole;
  }

  clear(): void {
    this.pieces = [];
  }
}

function join(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}

/** The stamp of the last line that has one. */
export function lastStamp(bytes: Uint8Array): string | undefined {
  let end = bytes.length;
  while (end > 0) {
    const start = bytes.lastIndexOf(10, end - 2) + 1;
    const stamp = stampAt(bytes, start, end);
    if (stamp !== undefined) return stamp;
    if (start === 0) return undefined;
    end = start;
  }
  return undefined;
}

function stampAt(bytes: Uint8Array, start: number, end: number): string | undefined {
  const space = bytes.indexOf(32, start);
  if (space < 0 || space >= end || space - start > 40) return undefined;
  const text = new TextDecoder().decode(bytes.subarray(start, space));
  return /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text) ? text : undefined;
}

export interface Snapshot<T> {
  data: T | undefined;
  error: ApiError | undefined;
  revision: string | undefined;
  /** Since when the console has not heard the cluster about this, in milliseconds. */
  staleSince: number | undefined;
}

export const NOTHING: Snapshot<never> = { data: undefined, error: undefined, revision: undefined, staleSince: undefined };

interface Identified {
  metadata?: { uid?: string };
}

/** Keeps what one subscription knows: a list by uid, or a view. Nothing is lost over a cut; `reset` begins again. */
export class LiveStore<T> {
  snapshot: Snapshot<T> = NOTHING;
  private readonly items = new Map<string, unknown>();
  private readonly listeners = new Set<() => void>();
  private isBeginning = true;
  private readonly base: Record<string, unknown>;

  constructor(base: RowsRequest | ObjectsRequest | ViewRequest) {
    this.base = { ...base };
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  request(): Record<string, unknown> {
    const { revision } = this.snapshot;
    const canResume = this.base.type !== 'view' && revision !== undefined && !this.isBeginning;
    if (!canResume) this.isBeginning = true;
    return canResume ? { ...this.base, since: revision } : { ...this.base };
  }

  onMessage(message: Message): void {
    if (message.type === 'error') this.update({ error: new ApiError(message.error ?? {}) });
    else if (message.type === 'reset') this.isBeginning = true;
    else if (message.type === 'stale') this.update({ staleSince: Date.parse(message.since ?? '') || Date.now() });
    else if (message.type === 'fresh') this.update({ staleSince: undefined });
    else if (message.type === 'view') this.update({ data: message.view as T, error: undefined, revision: message.revision });
    else if (message.type === 'rows') this.merge(message, (message.rows ?? []).map(decodeRow), (row) => (row as Row).uid);
    else if (message.type === 'objects')
      this.merge(message, message.objects ?? [], (object) => (object as Identified).metadata?.uid ?? '');
  }

  /** The console says again what is stale when it is reached again. */
  onCut(): void {
    if (this.snapshot.staleSince !== undefined) this.update({ staleSince: undefined });
  }

  // The old list stays on the screen until the new one has come whole.
  private merge(message: Message, items: unknown[], uidOf: (item: unknown) => string): void {
    if (this.isBeginning) {
      this.items.clear();
      this.isBeginning = false;
    }
    for (const item of items) this.items.set(uidOf(item), item);
    for (const uid of message.deleted ?? []) this.items.delete(uid);
    if (message.more) return;
    this.update({ data: [...this.items.values()] as T, error: undefined, revision: message.revision ?? this.snapshot.revision });
  }

  private update(patch: Partial<Snapshot<T>>): void {
    this.snapshot = { ...this.snapshot, ...patch };
    for (const listener of this.listeners) listener();
  }
}
