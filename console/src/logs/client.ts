// The page's side of the log worker. One worker serves all panes of a tab, so that one limit of memory holds for all of them.

import type { Frame, FromWorker, Target, ToWorker, Viewport, ViewSpec } from './messages.ts';

/** A worker as far as this needs one; tests bring their own. */
export interface WorkerPort {
  postMessage(message: ToWorker, transfer?: Transferable[]): void;
  onmessage: ((event: { data: FromWorker }) => void) | null;
  terminate(): void;
}

export type LineDetail = Omit<Extract<FromWorker, { type: 'line' }>, 'type' | 'id'>;
export type Found = Omit<Extract<FromWorker, { type: 'found' }>, 'type' | 'id'>;

let lastNumber = 0;
/** A number for a log, a view or a request. */
export const nextNumber = (): number => ++lastNumber;

/** How long the worker may be silent while it searches by an expression: some take for ever. */
export const HANG_MS = 10_000;
const PING_MS = 2000;

export class LogClient {
  readonly #receipts = new Map<number, () => void>();
  readonly #answers = new Map<number, (message: FromWorker) => void>();
  readonly #frames = new Map<number, (frame: Frame) => void>();
  /** By the number of the log that loads everything. */
  readonly #loading = new Map<number, (lines: number | null) => void>();
  /** Views that search by an expression, and the timer that asks whether the worker still answers. */
  readonly #expressions = new Set<number>();
  #ping: ReturnType<typeof setInterval> | undefined;
  #pingedAt: number | null = null;
  /** Called when an expression keeps the worker busy for too long; it must be ended. */
  onHang: (() => void) | null = null;

  constructor(readonly worker: WorkerPort) {
    worker.onmessage = (event) => this.#receive(event.data);
  }

  open(log: number): void {
    this.worker.postMessage({ type: 'open', log });
  }

  /** Load a log from its beginning, in place of `log` once it is there; `onProgress` gets its lines, and null at the end. */
  openInPlaceOf(log: number, by: number, onProgress: (lines: number | null) => void): void {
    this.#loading.set(by, onProgress);
    this.worker.postMessage({ type: 'open', log: by, replaces: log });
  }

  /** Add bytes; resolves when the worker has taken them, so that the server may send more. */
  append(log: number, bytes: Uint8Array): Promise<void> {
    const receipt = nextNumber();
    // A copy: others may hold parts of the same memory, which a transfer takes away.
    const copy = bytes.slice();
    return new Promise((resolve) => {
      this.#receipts.set(receipt, resolve);
      this.worker.postMessage({ type: 'bytes', log, bytes: copy, receipt }, [copy.buffer]);
    });
  }

  resume(log: number): void {
    this.worker.postMessage({ type: 'resume', log });
  }

  end(log: number): void {
    this.worker.postMessage({ type: 'end', log });
  }

  close(log: number): void {
    this.#loading.delete(log);
    this.worker.postMessage({ type: 'close', log });
  }

  setView(view: number, spec: ViewSpec): void {
    this.worker.postMessage({ type: 'view', view, spec });
    this.#watch(view, spec.query.isRegex && spec.query.text !== '');
  }

  terminate(): void {
    clearInterval(this.#ping);
    this.worker.terminate();
  }

  /** Call a function with every frame of a view; returns how to end the view. */
  onFrame(view: number, listener: (frame: Frame) => void): () => void {
    this.#frames.set(view, listener);
    return () => {
      this.#frames.delete(view);
      this.#watch(view, false);
      this.worker.postMessage({ type: 'unview', view });
    };
  }

  setViewport(view: number, viewport: Viewport): void {
    this.worker.postMessage({ type: 'viewport', view, ...viewport });
  }

  /** Tell the worker that the last frame of a view is on the screen: it sends no other one before. */
  drawn(view: number): void {
    this.worker.postMessage({ type: 'drawn', view });
  }

  seek(view: number, target: Target): Promise<Found> {
    return this.#ask((id) => ({ type: 'seek', view, id, target }));
  }

  detail(log: number, line: number): Promise<LineDetail> {
    return this.#ask((id) => ({ type: 'line', log, line, id }));
  }

  #watch(view: number, isExpression: boolean): void {
    if (isExpression) this.#expressions.add(view);
    else this.#expressions.delete(view);
    if (this.#expressions.size === 0) {
      clearInterval(this.#ping);
      this.#ping = undefined;
      this.#pingedAt = null;
    } else this.#ping ??= setInterval(() => this.#check(), PING_MS);
  }

  #check(): void {
    if (this.#pingedAt === null) {
      this.#pingedAt = Date.now();
      // There is no such line, but there is an answer.
      void this.detail(0, 0).then(() => {
        this.#pingedAt = null;
      });
    } else if (Date.now() - this.#pingedAt > HANG_MS) this.onHang?.();
  }

  #ask<T>(message: (id: number) => ToWorker): Promise<T> {
    const id = nextNumber();
    return new Promise((resolve) => {
      this.#answers.set(id, (answer) => resolve(answer as T));
      this.worker.postMessage(message(id));
    });
  }

  #receive(message: FromWorker): void {
    if (message.type === 'frame') this.#frames.get(message.view)?.(message);
    else if (message.type === 'receipt') take(this.#receipts, message.receipt)?.();
    else if (message.type === 'loading') this.#loading.get(message.log)?.(message.lines);
    else if (message.type === 'replaced') take(this.#loading, message.by)?.(null);
    else take(this.#answers, message.id)?.(message);
  }
}

function take<T>(map: Map<number, T>, key: number): T | undefined {
  const value = map.get(key);
  map.delete(key);
  return value;
}
