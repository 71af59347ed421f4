// What one pane shows: the lines of some logs, merged, filtered, with the places of search hits.

import type { LogBuffer } from './buffer.ts';
import { LevelScanner } from './levels.ts';
import { Order } from './order.ts';
import { Marks, type Matcher } from './search.ts';

export interface Filter {
  /** Only lines that match the search, with this many lines before and after each; null for all lines. */
  context: number | null;
  /** The least level that is shown; 0 for all. */
  level: number;
  /** Times, from (inclusive) and to (exclusive). */
  from: number;
  to: number;
}

export const EVERYTHING: Filter = { context: null, level: 0, from: -Infinity, to: Infinity };

/** Growing, sorted numbers. */
export class Positions {
  values = new Uint32Array(256);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const grown = new Uint32Array(this.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.length++] = value;
  }

  /** The index of the first number that is not smaller. */
  find(value: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.values[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class View {
  readonly order: Order;
  /** The rows that hold a search hit. */
  readonly hits = new Positions();
  /** Positions of the rows, where not every position is one. */
  readonly #rows: Positions | null;
  readonly #search: Marks[] | null;
  readonly #levels: Marks[] | null;
  readonly #context: number;
  /** Up to which line the rows have taken over the marks, which another view may have made. */
  readonly #taken = new Map<Marks, number>();

  /** `before` is a view whose marks can be used again, where it has the same logs and the same search. */
  constructor(
    readonly logs: readonly LogBuffer[],
    readonly matcher: Matcher | null,
    readonly filter: Filter = EVERYTHING,
    before: View | null = null,
  ) {
    this.order = new Order(logs);
    const find = (marks: Marks[] | null, log: LogBuffer) => marks?.find((candidate) => candidate.log === log);
    const searched = before !== null && before.matcher === matcher ? before.#search : null;
    const levelled = before === null ? null : before.#levels;
    this.#search = matcher && logs.map((log) => find(searched, log) ?? new Marks(log, matcher));
    this.#levels = filter.level > 0 ? logs.map((log) => find(levelled, log) ?? new Marks(log, new LevelScanner())) : null;
    const isTimed = filter.from > -Infinity || filter.to < Infinity;
    const isMatched = this.#search !== null && filter.context !== null;
    this.#context = (isMatched || this.#levels ? filter.context : null) ?? 0;
    this.#rows = isMatched || this.#levels || isTimed ? new Positions() : null;
  }

  get total(): number {
    return this.#rows ? this.#rows.length : this.order.length;
  }

  /** Whether every complete line has been scanned. */
  get isScanned(): boolean {
    return this.#marks().every((marks) => marks.isDone);
  }

  /** Scan one piece of one log; return whether everything has been scanned. */
  scan(): boolean {
    for (const marks of this.#marks()) if (!marks.isDone) return marks.advance() && this.isScanned;
    return true;
  }

  /** Take over what the logs have got or lost. `from` is the first position to look at again, beside new ones. */
  update(from = Infinity): void {
    let cut = Math.min(from, this.order.update());
    for (const kind of [this.#search, this.#levels])
      kind?.forEach((marks, source) => {
        const line = Math.max(this.#taken.get(marks) ?? 0, marks.log.first);
        while (!marks.advance());
        if (line < marks.scanned) cut = Math.min(cut, this.order.find(source, line));
        this.#taken.set(marks, marks.scanned);
      });
    if (this.#rows) this.#collect(this.#rows, cut);
    else this.#collectHits(cut);
  }

  positionOf(row: number): number {
    return this.#rows ? this.#rows.values[row]! : row;
  }

  /** The row of a position, or the next one. */
  rowOf(position: number): number {
    return this.#rows ? this.#rows.find(position) : position;
  }

  /** Which log and which of its lines a row shows. */
  at(row: number): { source: number; line: number } {
    const position = this.positionOf(row);
    return { source: this.order.source[position]!, line: this.order.line[position]! };
  }

  /** The row of a log's line, or the next one. */
  find(source: number, line: number): number {
    const log = this.logs[source]!;
    if (line >= log.end) return this.total;
    return this.rowOf(this.order.find(source, Math.max(line, log.first)));
  }

  #marks(): Marks[] {
    return [...(this.#search ?? []), ...(this.#levels ?? [])];
  }

  #isHit(position: number): boolean {
    return this.#search![this.order.source[position]!]!.at(this.order.line[position]!) > 0;
  }

  #passes(position: number): boolean {
    const source = this.order.source[position]!;
    const line = this.order.line[position]!;
    if (this.#search && this.filter.context !== null && this.#search[source]!.at(line) === 0) return false;
    return !this.#levels || this.#levels[source]!.at(line) >= this.filter.level;
  }

  #collectHits(cut: number): void {
    this.hits.length = this.hits.find(cut);
    if (!this.#search) return;
    for (let position = cut; position < this.order.length; position++) if (this.#isHit(position)) this.hits.push(position);
  }

  #collect(rows: Positions, cut: number): void {
    const begin = this.order.findTime(this.filter.from);
    const end = this.filter.to < Infinity ? this.order.findTime(this.filter.to) : this.order.length;
    // A new match shows lines before it, too.
    const changed = Math.max(0, cut - this.#context);
    const start = Math.max(begin, changed);
    rows.length = rows.find(changed);
    this.hits.length = this.hits.find(rows.length);
    let shown = rows.length > 0 ? rows.values[rows.length - 1]! : begin - 1;
    let after = this.#contextLeft(begin, start);
    for (let position = start; position < end; position++) {
      if (this.#passes(position)) {
        for (let row = Math.max(shown + 1, position - this.#context); row <= position; row++) this.#show(rows, row);
        shown = position;
        after = this.#context;
      } else if (after > 0) {
        this.#show(rows, position);
        shown = position;
        after--;
      }
    }
  }

  /** How many lines from `start` on are shown because of a match before it. */
  #contextLeft(begin: number, start: number): number {
    for (let back = 1; back <= this.#context && start - back >= begin; back++)
      if (this.#passes(start - back)) return this.#context - back + 1;
    return 0;
  }

  #show(rows: Positions, position: number): void {
    if (this.#search && this.#isHit(position)) this.hits.push(rows.length);
    rows.push(position);
  }
}
