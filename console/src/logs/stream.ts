// One container's log, from the server into the worker: its end first, everything on request, and again after a cut.

import type { ApiError } from '../app/api.ts';
import { lastStamp, type Live, type LogEnd, type LogRequest } from '../app/live.ts';
import { nextNumber, type LogClient } from './client.ts';

/** Which log to show, and how. */
export interface LogSource {
  namespace: string;
  pod: string;
  uid: string;
  container: string;
  /** Name of the replica, such as worker-0; what stands before each line. */
  replica: string;
  /** Number of the attempt, from 0. */
  attempt: number;
  /** Number of the replica's colour, as in parts/ReplicaDot. */
  color: number;
  /** Whether its container has ended, so that no more lines can come. */
  ended: boolean;
  /** A container of ours beside the command (clone, download): not shown until it is chosen. */
  auxiliary?: boolean;
  /** The log of the container's instance before this one. */
  previous?: boolean;
}

export interface StreamState {
  phase: 'connecting' | 'streaming' | 'waiting' | 'ended' | 'failed';
  /** Whether the log is held from its beginning. */
  isWhole: boolean;
  /** Lines loaded so far while everything is loading; null otherwise. */
  loading: number | null;
  hasBytes: boolean;
  exitCode?: number;
  error?: ApiError;
}

/** A container that has not started yet, or is about to restart, is asked for again after this time. */
const RETRY_MS = 3000;
const MAY_COME = new Set([400, 404, 409, 500, 502, 503, 504]);

export function keyOf(source: LogSource): string {
  return [source.namespace, source.pod, source.uid, source.container, source.previous ? 'previous' : ''].join('/');
}

type LiveLogs = Pick<Live, 'subscribeLog' | 'onState' | 'state'>;

export class LogStream {
  readonly log = nextNumber();
  state: StreamState = { phase: 'connecting', isWhole: false, loading: null, hasBytes: false };
  /** Kept up to date by whoever owns the stream. */
  isEnded: boolean;
  #stop: () => void = () => {};
  #stopLoading: () => void = () => {};
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** The number under which bytes go to the worker: another one after everything was loaded. */
  #into = this.log;
  #loadingLog: number | null = null;
  #after: string | undefined;
  #tail: number | undefined;
  /** How the loading log has ended, if it has before it is shown. */
  #loadedEnd: LogEnd | null = null;
  readonly #unlisten: () => void;

  constructor(
    readonly source: LogSource,
    readonly client: LogClient,
    readonly live: LiveLogs,
    readonly onChange: () => void,
  ) {
    this.isEnded = source.ended;
    client.open(this.log);
    this.#unlisten = live.onState(() => {
      if (live.state === 'live') return;
      // What comes next begins at or before the last whole line.
      client.resume(this.#into);
      if (this.#loadingLog !== null) client.resume(this.#loadingLog);
    });
  }

  /** Follow the log from its last `tail` lines on; from the beginning without a number. */
  start(tail?: number): void {
    this.#tail = tail;
    this.#change({ isWhole: tail === undefined });
    this.#stop = this.#subscribe(this.#into, this.#range());
  }

  loadEverything(): void {
    if (this.state.isWhole || this.#loadingLog !== null) return;
    const by = nextNumber();
    this.#loadingLog = by;
    this.#change({ loading: 0 });
    this.client.openInPlaceOf(this.log, by, (lines) => (lines === null ? this.#takeOver(by) : this.#change({ loading: lines })));
    this.#stopLoading = this.#subscribe(by, {});
  }

  stop(): void {
    clearTimeout(this.#retry);
    this.#unlisten();
    this.#stop();
    this.#stopLoading();
    this.client.close(this.#into);
    if (this.#loadingLog !== null) this.client.close(this.#loadingLog);
  }

  /** From where to go on: the last whole line, or else the end of the log. */
  #range(): Pick<LogRequest, 'tail' | 'after'> {
    if (this.#after !== undefined) return { after: this.#after };
    return this.#tail === undefined ? {} : { tail: this.#tail };
  }

  #subscribe(into: number, range: Pick<LogRequest, 'tail' | 'after'>): () => void {
    const { namespace, pod, uid, container, previous } = this.source;
    return this.live.subscribeLog(
      { namespace, pod, uid, container, follow: true, ...(previous ? { previous } : {}), ...range },
      (bytes) => {
        if (into === this.#into) this.#after = lastStamp(bytes) ?? this.#after;
        if (!this.state.hasBytes || this.state.phase !== 'streaming') this.#change({ hasBytes: true, phase: 'streaming' });
        return this.client.append(into, bytes);
      },
      (end) => this.#ended(into, end),
    );
  }

  #ended(into: number, end: LogEnd): void {
    if (into !== this.#into) {
      if (end.error) return this.#giveUpLoading();
      // The worker puts it in place now, and answers.
      this.#loadedEnd = end;
      return this.client.end(into);
    }
    const mayCome = !this.isEnded && (end.error === undefined || MAY_COME.has(end.error.code));
    if (mayCome) return this.#again(into, end);
    this.client.end(into);
    this.#change({ phase: end.error ? 'failed' : 'ended', ...end });
  }

  #again(into: number, end: LogEnd): void {
    this.#change({ phase: 'waiting', ...end });
    this.#retry = setTimeout(() => {
      this.client.resume(into);
      this.#stop = this.#subscribe(into, this.#range());
    }, RETRY_MS);
  }

  #giveUpLoading(): void {
    if (this.#loadingLog !== null) this.client.close(this.#loadingLog);
    this.#loadingLog = null;
    this.#change({ loading: null });
  }

  /** The log from its beginning has reached the one that is shown, and is shown from now on. */
  #takeOver(by: number): void {
    this.#stop();
    clearTimeout(this.#retry);
    this.#into = by;
    this.#loadingLog = null;
    this.#stop = this.#stopLoading;
    this.#stopLoading = () => {};
    this.#tail = undefined;
    this.#change({ isWhole: true, loading: null });
    if (this.#loadedEnd) this.#ended(by, this.#loadedEnd);
  }

  #change(patch: Partial<StreamState>): void {
    this.state = { ...this.state, ...patch };
    this.onChange();
  }
}
