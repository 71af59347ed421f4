// Which lines match: found piece by piece, over decoded text, and remembered as one byte per line.

import type { LogBuffer, Piece } from './buffer.ts';

export interface Query {
  text: string;
  isRegex: boolean;
  matchCase: boolean;
}

/** Marks the lines of one decoded piece: calls `mark(index, value)` with the line's place in the piece. */
export interface Scanner {
  scan(text: string, mark: (index: number, value: number) => void): void;
  /** Forget what the end of the last piece left over. */
  reset?(): void;
}

export interface Matcher extends Scanner {
  /** Where a line matches, as pairs of begin and end, for highlighting. */
  ranges(text: string): number[];
}

const COLOURS = /\x1b\[[0-9;:]*m/g;
const SPECIAL = /[\\^$.*+?()[\]{}|/]/g;
/** More marks in one line help nobody and cost time. */
const MAX_RANGES = 1000;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Text without colours, so that a search finds what is shown. */
export function plainText(bytes: Uint8Array, hasEscape: boolean): string {
  const text = decoder.decode(bytes);
  return hasEscape ? text.replace(COLOURS, '') : text;
}

/** Return a matcher, or null for an empty query; throw a SyntaxError for an invalid expression. */
export function compile(query: Query): Matcher | null {
  if (query.text === '') return null;
  const source = query.isRegex ? query.text : query.text.replace(SPECIAL, '\\$&');
  const flags = query.matchCase ? 'gmu' : 'gimu';
  const expression = new RegExp(source, flags);
  // Also for plain text: an expression is quicker than lower-casing everything.
  return { ranges: (text) => rangesOf(expression, text), scan: (text, mark) => scanExpression(expression, text, mark) };
}

function rangesOf(expression: RegExp, text: string): number[] {
  const ranges: number[] = [];
  for (const match of text.matchAll(expression)) {
    if (match[0] === '') continue;
    ranges.push(match.index, match.index + match[0].length);
    if (ranges.length >= MAX_RANGES) break;
  }
  return ranges;
}

/** Walks forward through a text and counts its lines. */
export class LineCounter {
  index = 0;
  /** Where the next line begins. */
  next: number;

  constructor(readonly text: string) {
    this.next = this.#after(0);
  }

  /** Go to the line that contains `offset`. */
  advance(offset: number): number {
    while (this.next <= offset) {
      this.index++;
      this.next = this.#after(this.next);
    }
    return this.index;
  }

  #after(offset: number): number {
    const newline = this.text.indexOf('\n', offset);
    return newline < 0 ? Infinity : newline + 1;
  }
}

function scanExpression(expression: RegExp, text: string, mark: (index: number, value: number) => void): void {
  const counter = new LineCounter(text);
  expression.lastIndex = 0;
  for (let match = expression.exec(text); match; match = expression.exec(text)) {
    // An empty match behind the last newline belongs to no line.
    if (match.index >= text.length && text.endsWith('\n')) return;
    mark(counter.advance(match.index), 1);
    if (counter.next > text.length) return;
    expression.lastIndex = counter.next;
  }
}

/** The marks of one log: a byte per line, 0 for none. Follows the log as it grows and loses lines. */
export class Marks {
  values = new Uint8Array(1024);
  first: number;
  /** Lines before this one have been scanned. */
  scanned: number;

  constructor(
    readonly log: LogBuffer,
    readonly scanner: Scanner,
  ) {
    this.first = this.scanned = log.first;
    scanner.reset?.();
  }

  get isDone(): boolean {
    return this.scanned >= this.log.complete;
  }

  /** Scan what remains of one piece; return whether everything has been scanned. */
  advance(): boolean {
    this.#forget();
    if (this.isDone) return true;
    const piece = this.log.pieceOf(this.scanned);
    const end = Math.min(piece.first + piece.count, this.log.complete);
    this.#reserve(end - this.first);
    const { values } = this;
    const offset = this.scanned - this.first;
    this.scanner.scan(textOf(piece, this.scanned, end), (index, value) => {
      values[offset + index] = value;
    });
    this.scanned = end;
    return this.isDone;
  }

  at(line: number): number {
    return line < this.scanned ? (this.values[line - this.first] ?? 0) : 0;
  }

  #forget(): void {
    const { first } = this.log;
    if (first === this.first) return;
    this.values = this.values.slice(Math.min(first - this.first, this.values.length));
    this.first = first;
    this.scanned = Math.max(this.scanned, first);
  }

  #reserve(length: number): void {
    if (length <= this.values.length) return;
    const grown = new Uint8Array(Math.max(length, this.values.length * 2));
    grown.set(this.values);
    this.values = grown;
  }
}

function textOf(piece: Piece, from: number, end: number): string {
  const index = end - piece.first;
  const stop = index === piece.count ? piece.used : piece.starts[index]!;
  return plainText(piece.bytes.subarray(piece.starts[from - piece.first]!, stop), piece.hasEscape);
}
