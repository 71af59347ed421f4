// The worker's state: logs, views of them, and answers to a pane. Knows no worker, so that tests run it as it is.

import { segmentsOf, showLine, statesOf, withHits } from './ansi.ts';
import { LogBuffer } from './buffer.ts';
import { ERROR, levelOf, NO_LEVEL, TRACEBACK } from './levels.ts';
import type { Frame, FromWorker, LogStatus, ShownRow, Target, ToWorker, Viewport, ViewSpec } from './messages.ts';
import { compile, Marks, type Matcher, type Query } from './search.ts';
import { formatStamp, parseStamp } from './stamps.ts';
import { EVERYTHING, View } from './view.ts';

export const MEMORY_LIMIT = 512 * 1024 * 1024;
/** Dropping goes on down to this share of the limit, so that it is rare. */
const AFTER_DROP = 0.9;
/** Characters of a line that are shown at once; a line of ten megabytes would stop the page. */
export const SHOWN_CHARACTERS = 2000;
const DETAIL_CHARACTERS = 200_000;
const DETAIL_STATES = 200;
/** A line inside of a traceback, also behind the rank that torchrun puts in front. */
const INDENTED = /^(?:\[\w+\]: ?)? +/;
const MAX_TRACEBACK = 100;

interface Shown {
  spec: ViewSpec;
  view: View;
  /** What is wrong with the search; empty if nothing is. */
  error: string;
}

interface Pane {
  shown: Shown;
  /** What will be shown as soon as its lines have been scanned. */
  next: Shown | null;
  /** What the pane has asked for, moved along with its anchor. */
  port: Viewport;
  /** Whether a frame is under way to the screen, and whether there is something newer. */
  isDrawing: boolean;
  isBehind: boolean;
}

export class LogSession {
  readonly #logs = new Map<number, LogBuffer>();
  readonly #panes = new Map<number, Pane>();
  /** Logs that are loading everything, and which log each will replace. */
  readonly #replacements = new Map<number, number>();
  /** Where the bytes of a log go that has replaced another. */
  readonly #aliases = new Map<number, number>();
  #isDirty = false;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(
    readonly post: (message: FromWorker) => void,
    readonly origin: number,
    readonly limit = MEMORY_LIMIT,
  ) {}

  get isScanning(): boolean {
    return [...this.#panes.values()].some((pane) => pane.next !== null);
  }

  get hasWork(): boolean {
    return this.#isDirty || this.isScanning;
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'open':
        this.#logs.set(message.log, new LogBuffer(this.origin));
        if (message.replaces !== undefined) this.#replacements.set(message.log, message.replaces);
        break;
      case 'bytes':
        this.#log(message.log)?.append(message.bytes);
        this.post({ type: 'receipt', receipt: message.receipt });
        this.#dropOldest();
        break;
      case 'resume':
        this.#log(message.log)?.resume();
        break;
      case 'end':
        this.#end(message.log);
        break;
      case 'close':
        this.#close(message.log);
        break;
      case 'view':
        this.#setView(message.view, message.spec);
        break;
      case 'unview':
        this.#panes.delete(message.view);
        break;
      case 'viewport':
        return this.#moveTo(message);
      case 'drawn':
        return this.#drawn(message.view);
      case 'seek':
        return this.#seek(message.view, message.id, message.target);
      case 'line':
        return this.#detail(message.log, message.line, message.id);
    }
    this.#isDirty = true;
  }

  /** Search for a while, for views that are not shown yet. */
  scan(hasTime: () => boolean): void {
    for (const pane of this.#panes.values()) {
      while (pane.next && !pane.next.view.isScanned && hasTime()) pane.next.view.scan();
      if (!pane.next?.view.isScanned) continue;
      this.#show(pane, pane.next);
      this.#isDirty = true;
    }
  }

  /** Take over what is new, and send a frame of every pane that has drawn its last one. */
  tick(): void {
    this.#isDirty = false;
    this.#replace();
    for (const [id, pane] of this.#panes) {
      pane.isBehind = pane.isDrawing;
      if (pane.isDrawing) continue;
      this.#refresh(pane);
      this.#send(id, pane);
    }
  }

  #send(id: number, pane: Pane): void {
    pane.isDrawing = true;
    this.post(this.#frame(id, pane));
  }

  #drawn(id: number): void {
    const pane = this.#panes.get(id);
    if (!pane) return;
    pane.isDrawing = false;
    if (pane.isBehind) this.#isDirty = true;
  }

  #log(id: number): LogBuffer | undefined {
    return this.#logs.get(this.#aliases.get(id) ?? id);
  }

  #end(id: number): void {
    this.#log(id)?.finish();
    // A log that has ended has everything there is.
    if (this.#replacements.has(id)) this.#swap(id);
  }

  #close(id: number): void {
    this.#logs.delete(this.#aliases.get(id) ?? id);
    this.#aliases.delete(id);
    this.#replacements.delete(id);
  }

  #dropOldest(): void {
    let size = 0;
    for (const log of this.#logs.values()) size += log.size;
    if (size <= this.limit) return;
    while (size > this.limit * AFTER_DROP) {
      const logs = [...this.#logs.values()].filter((log) => log.pieces.length > 1);
      if (logs.length === 0) return;
      size -= logs.reduce((one, other) => (other.pieces[0]!.last < one.pieces[0]!.last ? other : one)).drop();
    }
  }

  /** Put logs in place that have loaded everything up to where the shown ones are. */
  #replace(): void {
    for (const [by, log] of this.#replacements) {
      const [loaded, shown] = [this.#logs.get(by)!, this.#logs.get(log)];
      const isReady = !shown || shown.end === shown.first || (loaded.end > loaded.first && reaches(loaded, shown));
      if (isReady) this.#swap(by);
      else this.post({ type: 'loading', log: by, lines: loaded.end - loaded.first, bytes: loaded.size });
    }
  }

  #swap(by: number): void {
    const log = this.#replacements.get(by)!;
    this.#replacements.delete(by);
    const shown = this.#logs.get(log);
    const loaded = this.#logs.get(by)!;
    this.#logs.delete(by);
    if (!shown) return;
    this.#logs.set(log, loaded);
    this.#aliases.set(by, log);
    for (const pane of this.#panes.values()) {
      const { spec } = pane.next ?? pane.shown;
      if (spec.logs.includes(log)) pane.next = this.#prepare(spec, pane.shown);
    }
    this.post({ type: 'replaced', log, by });
  }

  #setView(id: number, spec: ViewSpec): void {
    const pane = this.#panes.get(id);
    const next = this.#prepare(spec, pane?.shown);
    if (pane) pane.next = next;
    else this.#panes.set(id, { shown: next, next: null, port: { request: 0, from: 0, count: 0, anchor: 0, isFollowing: true }, isDrawing: false, isBehind: false });
  }

  /** Show another view, with the anchor's line where it was. */
  #show(pane: Pane, next: Shown): void {
    const anchor = this.#anchor(pane);
    next.view.update();
    pane.shown = next;
    pane.next = null;
    if (!anchor) return;
    const source = next.spec.logs.indexOf(anchor.id);
    const log = next.view.logs[source];
    // Another buffer of the same log has other numbers, but the same lines behind the anchor with its time.
    const line = !log || log === anchor.log ? anchor.line : endAt(log, anchor.time) - (endAt(anchor.log, anchor.time) - anchor.line);
    moveAnchor(pane, log ? next.view.find(source, line) : next.view.rowOf(next.view.order.findTime(anchor.time)));
  }

  #prepare(spec: ViewSpec, before?: Shown): Shown {
    const { matcher, error } = before && isSameQuery(before.spec.query, spec.query) ? { matcher: before.view.matcher, error: before.error } : compiled(spec.query);
    const filter = {
      context: spec.onlyMatching ? spec.context : null,
      level: spec.level,
      from: spec.from ? parseStamp(spec.from, this.origin) : EVERYTHING.from,
      to: spec.to ? parseStamp(spec.to, this.origin) : EVERYTHING.to,
    };
    const logs = spec.logs.map((id) => this.#logs.get(id) ?? new LogBuffer(this.origin));
    return { spec, view: new View(logs, matcher, filter, before?.view ?? null), error };
  }

  /** The line that stays where it is, unless the end is followed. */
  #anchor(pane: Pane): { id: number; log: LogBuffer; line: number; time: number } | null {
    const { view, spec } = pane.shown;
    if (pane.port.isFollowing || pane.port.anchor >= view.total) return null;
    const { source, line } = view.at(pane.port.anchor);
    const log = view.logs[source]!;
    return { id: spec.logs[source]!, log, line, time: line >= log.first ? log.times.at(line) : -Infinity };
  }

  #refresh(pane: Pane): void {
    const anchor = this.#anchor(pane);
    const { view } = pane.shown;
    view.update();
    if (anchor) moveAnchor(pane, view.find(view.logs.indexOf(anchor.log), anchor.line));
  }

  #moveTo(message: Extract<ToWorker, { type: 'viewport' }>): void {
    const pane = this.#panes.get(message.view);
    if (!pane) return;
    const { request, from, count, anchor, isFollowing } = message;
    pane.port = { request, from, count, anchor, isFollowing };
    this.#send(message.view, pane);
  }

  #frame(id: number, pane: Pane): Frame {
    const { view, spec, error } = pane.shown;
    const { port } = pane;
    port.from = port.isFollowing ? Math.max(0, view.total - port.count) : Math.max(0, Math.min(port.from, view.total - 1));
    const end = Math.min(port.from + port.count, view.total);
    const rows: ShownRow[] = [];
    for (let row = port.from; row < end; row++) rows.push(this.#row(pane.shown, row));
    return {
      type: 'frame',
      view: id,
      total: view.total,
      hits: view.hits.length,
      hitsBefore: view.hits.find(port.from),
      isSearching: pane.next !== null,
      error,
      request: port.request,
      from: port.from,
      anchor: port.anchor,
      isFollowing: port.isFollowing,
      rows,
      logs: spec.logs.map((log) => this.#status(log)),
    };
  }

  #row({ spec, view }: Shown, row: number): ShownRow {
    const { source, line } = view.at(row);
    const log = view.logs[source]!;
    const { stamp, nth } = this.#stampOf(log, line);
    const text = this.#decoder.decode(log.bytes(line));
    const shown = showLine(text, SHOWN_CHARACTERS);
    const { matcher } = view;
    const segments = matcher ? withHits(shown.segments, (plain) => matcher.ranges(plain)) : shown.segments;
    const level = this.#levelOf(log, line, text);
    return { row, log: spec.logs[source]!, line, stamp, nth, ...shown, segments, level };
  }

  /** A line's level; the indented lines of a traceback have that of an error. */
  #levelOf(log: LogBuffer, line: number, text: string): number {
    const level = levelOf(text.slice(0, SHOWN_CHARACTERS));
    if (level !== NO_LEVEL || !INDENTED.test(text)) return level;
    for (let back = line - 1; back >= Math.max(log.first, line - MAX_TRACEBACK); back--) {
      const before = this.#decoder.decode(log.bytes(back).subarray(0, SHOWN_CHARACTERS));
      if (!INDENTED.test(before)) return levelOf(before) === TRACEBACK ? ERROR : NO_LEVEL;
    }
    return NO_LEVEL;
  }

  #stampOf(log: LogBuffer, line: number): { stamp: string; nth: number } {
    const time = log.stamp(line);
    if (time !== time) return { stamp: '', nth: 0 };
    return { stamp: formatStamp(time, this.origin), nth: line - firstAt(log, log.times.at(line)) };
  }

  #status(id: number): LogStatus {
    const log = this.#logs.get(id);
    if (!log) return { log: id, lines: 0, bytes: 0, dropped: 0, first: '', last: '' };
    const stamp = (line: number) => (log.end > log.first ? this.#stampOf(log, line).stamp : '');
    return {
      log: id,
      lines: log.end - log.first,
      bytes: log.size,
      dropped: log.dropped,
      first: stamp(log.first),
      last: stamp(log.end - 1),
    };
  }

  #seek(id: number, request: number, target: Target): void {
    const pane = this.#panes.get(id);
    const row = pane ? this.#targetRow(pane, target) : null;
    if (!pane || row === null) return this.post({ type: 'found', id: request, row: null, log: 0, line: 0, hit: 0 });
    const { view, spec } = pane.shown;
    const { source, line } = view.at(row);
    this.post({ type: 'found', id: request, row, log: spec.logs[source]!, line, hit: view.hits.find(row) });
  }

  #targetRow(pane: Pane, target: Target): number | null {
    const { view, spec } = pane.shown;
    if (target.kind === 'hit') return nextHit(view, target.row, target.direction);
    const source = spec.logs.indexOf(target.log);
    const log = view.logs[source];
    if (!log || log.end === log.first) return null;
    this.#refresh(pane);
    const line = target.kind === 'traceback' ? firstTraceback(log) : lineAt(log, parseStamp(target.stamp, this.origin), target.nth);
    if (line === null) return null;
    const row = view.find(source, line);
    return row < view.total ? row : null;
  }

  #detail(id: number, line: number, request: number): void {
    const log = this.#logs.get(id);
    const isHeld = log !== undefined && line >= log.first && line < log.end;
    const text = isHeld ? this.#decoder.decode(log.bytes(line)) : '';
    const states = statesOf(text);
    const shown = states.slice(-DETAIL_STATES);
    const limit = Math.ceil(DETAIL_CHARACTERS / shown.length);
    this.post({
      type: 'line',
      id: request,
      states: shown.map((state) => segmentsOf(state.slice(0, limit))),
      earlier: states.length - shown.length,
      text: text.slice(0, DETAIL_CHARACTERS),
    });
  }
}

function moveAnchor(pane: Pane, row: number): void {
  pane.port.from = Math.max(0, pane.port.from + row - pane.port.anchor);
  pane.port.anchor = row;
}

function isSameQuery(one: Query, other: Query): boolean {
  return one.text === other.text && one.isRegex === other.isRegex && one.matchCase === other.matchCase;
}

function compiled(query: Query): { matcher: Matcher | null; error: string } {
  try {
    return { matcher: compile(query), error: '' };
  } catch (error) {
    return { matcher: null, error: error instanceof Error ? error.message : String(error) };
  }
}

/** The first line of a log whose time is not before `time`. */
function firstAt(log: LogBuffer, time: number): number {
  let [low, high] = [log.first, log.end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (log.times.at(middle) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** One more than the last line of a log whose time is not after `time`. */
function endAt(log: LogBuffer, time: number): number {
  let line = firstAt(log, time);
  while (line < log.end && log.times.at(line) === time) line++;
  return line;
}

function lineAt(log: LogBuffer, time: number, nth: number): number | null {
  if (time !== time) return null;
  const line = firstAt(log, time);
  if (line >= log.end || log.times.at(line) !== time) return null;
  const next = line + nth;
  return next < log.end && log.times.at(next) === time ? next : line;
}

/** Whether one log has got as far as another one of the same container. */
function reaches(loaded: LogBuffer, shown: LogBuffer): boolean {
  const time = shown.times.at(shown.end - 1);
  const last = loaded.times.at(loaded.end - 1);
  return last > time || (last === time && loaded.end - firstAt(loaded, time) >= shown.end - firstAt(shown, time));
}

/** The line of the first traceback, or else of the first error. */
function firstTraceback(log: LogBuffer): number | null {
  for (const text of ['Traceback (most recent call last)', 'Error:', 'ERROR']) {
    const marks = new Marks(log, compile({ text, isRegex: false, matchCase: true })!);
    while (!marks.isDone) {
      const begin = marks.scanned;
      marks.advance();
      const index = marks.values.subarray(begin - marks.first, marks.scanned - marks.first).indexOf(1);
      if (index >= 0) return begin + index;
    }
  }
  return null;
}

function nextHit(view: View, row: number, direction: 1 | -1): number | null {
  const { hits } = view;
  if (hits.length === 0) return null;
  const index = direction > 0 ? hits.find(row + 1) : hits.find(row) - 1;
  // Behind the last one comes the first.
  return hits.values[(index + hits.length) % hits.length]!;
}
