// The bytes of one log, as lines.
//
// Bytes stay bytes: text is kept in pieces of about one mebibyte, without its stamps, and is decoded only where it is
// searched or shown. Lines are numbered from 0 and keep their number when older pieces are dropped.

import { MAX_STAMP, StampReader } from './stamps.ts';

export const PIECE_BYTES = 1 << 20;
const NEWLINE = 10;
const SPACE = 32;
const ESCAPE = 27;
/** What a line costs beside its bytes: start, time, and a mark per search and level. */
const LINE_COST = 14;

export interface Piece {
  /** Number of its first line, and how many lines it has. */
  first: number;
  count: number;
  bytes: Uint8Array;
  used: number;
  /** Where each line begins; a line ends before the newline in front of the next one. */
  starts: Uint32Array;
  /** The time of its last line: the oldest piece over all logs is dropped first. */
  last: number;
  hasEscape: boolean;
}

/** Numbers by line, dropped from the front and added at the end. */
export class Times {
  values = new Float64Array(1024);
  first = 0;
  end = 0;

  push(value: number): void {
    if (this.end - this.first === this.values.length) {
      const grown = new Float64Array(this.values.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.end++ - this.first] = value;
  }

  at(line: number): number {
    return this.values[line - this.first]!;
  }

  dropBefore(line: number): void {
    this.values = this.values.slice(line - this.first, Math.max(this.end - this.first, line - this.first + 1024));
    this.first = line;
  }
}

export class LogBuffer {
  readonly pieces: Piece[] = [];
  /** Times for merging: never decreasing, so that a clock that is set back cannot reorder the lines of one log. */
  readonly times = new Times();
  /** Stamps as they were read; NaN for a line without one. Null while they equal `times`. */
  #stamps: Times | null = null;
  /** Whether the last line has no newline yet. */
  isOpen = false;
  /** Lines lost to the memory limit. */
  dropped = 0;
  #size = 0;
  readonly #reader: StampReader;
  /** Start of a line whose stamp is not complete. */
  #head = new Uint8Array(MAX_STAMP);
  #headLength = 0;
  #isDiscarding = false;
  /** After a resumption: lines before this stamp, and this many from its first one on, are here already. */
  #seen: { time: number; count: number; isReached: boolean } | null = null;
  #isStale = false;

  constructor(readonly origin: number) {
    this.#reader = new StampReader(origin);
  }

  get first(): number {
    return this.times.first;
  }

  /** One more than the number of the last line. */
  get end(): number {
    return this.times.end;
  }

  /** One more than the number of the last complete line. */
  get complete(): number {
    return this.times.end - (this.isOpen ? 1 : 0);
  }

  /** Bytes that this log holds. */
  get size(): number {
    return this.#size;
  }

  append(data: Uint8Array): void {
    let at = 0;
    if (this.#headLength > 0) at = this.#continueHead(data);
    while (at < data.length) {
      let end = data.indexOf(NEWLINE, at);
      const isEnd = end >= 0;
      if (!isEnd) end = data.length;
      if (this.#isDiscarding) this.#isDiscarding = !isEnd;
      else if (this.isOpen && !this.#isStale) this.#extend(data, at, end, isEnd);
      else if (!isEnd && isCutStamp(data, at, end)) return this.#keepHead(data, at, end);
      else this.#begin(data, at, end, isEnd);
      at = end + 1;
    }
  }

  /** The stream begins again at or before the last complete line: skip what is here, by stamp and count. */
  resume(): void {
    this.#headLength = 0;
    this.#isDiscarding = false;
    this.#isStale = this.isOpen;
    let line = this.complete - 1;
    // A line without a stamp belongs to the one before it.
    while (line >= this.first && Number.isNaN(this.stamp(line))) line--;
    if (line < this.first) return;
    const time = this.stamp(line);
    while (line > this.first && this.stamp(line - 1) === time) line--;
    this.#seen = { time, count: this.complete - line, isReached: false };
  }

  /** No more bytes will come: complete the last line. */
  finish(): void {
    if (this.#headLength > 0) this.append(Uint8Array.of(NEWLINE));
    if (this.isOpen && !this.#isStale) this.append(Uint8Array.of(NEWLINE));
    this.isOpen = false;
  }

  /** The stamp of a line as it was written; NaN if it had none. */
  stamp(line: number): number {
    return (this.#stamps ?? this.times).at(line);
  }

  pieceOf(line: number): Piece {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.pieces[middle]!.first <= line) low = middle;
      else high = middle - 1;
    }
    return this.pieces[low]!;
  }

  /** The bytes of a line, without its newline. */
  bytes(line: number): Uint8Array {
    const piece = this.pieceOf(line);
    const index = line - piece.first;
    const isLast = index + 1 === piece.count;
    const end = isLast ? piece.used - (this.isOpen && line + 1 === this.end ? 0 : 1) : piece.starts[index + 1]! - 1;
    return piece.bytes.subarray(piece.starts[index]!, end);
  }

  /** Remove the oldest piece and return how many bytes that frees; 0 if only one is left. */
  drop(): number {
    if (this.pieces.length < 2) return 0;
    const before = this.#size;
    const piece = this.pieces.shift()!;
    this.#size -= cost(piece);
    this.dropped += piece.count;
    this.times.dropBefore(piece.first + piece.count);
    this.#stamps?.dropBefore(piece.first + piece.count);
    return before - this.#size;
  }

  #keepHead(data: Uint8Array, from: number, end: number): void {
    this.#head.set(data.subarray(from, end));
    this.#headLength = end - from;
  }

  /** Complete the stamp that the last chunk cut, and return where the rest of the line begins. */
  #continueHead(data: Uint8Array): number {
    const rest = data.subarray(0, MAX_STAMP - this.#headLength);
    const stop = rest.findIndex((byte) => byte === NEWLINE || byte === SPACE);
    const isEnd = rest[stop] === NEWLINE;
    const count = stop < 0 ? rest.length : isEnd ? stop : stop + 1;
    this.#head.set(rest.subarray(0, count), this.#headLength);
    this.#headLength += count;
    if (stop < 0 && this.#headLength < MAX_STAMP) return data.length;
    const length = this.#headLength;
    this.#headLength = 0;
    this.#begin(this.#head, 0, length, isEnd);
    return isEnd ? count + 1 : count;
  }

  #begin(data: Uint8Array, from: number, end: number, isEnd: boolean): void {
    const hasStamp = this.#reader.read(data, from, end);
    const stamp = hasStamp ? this.#reader.time : NaN;
    if (this.#seen && this.#isSeen(stamp)) {
      this.#isDiscarding = !isEnd;
      return;
    }
    if (this.#isStale) this.#renew(stamp);
    else this.#addLine(stamp);
    this.#extend(data, hasStamp ? from + this.#reader.length : from, end, isEnd);
  }

  #isSeen(stamp: number): boolean {
    const seen = this.#seen!;
    if (stamp === seen.time) seen.isReached = true;
    if (stamp > seen.time || (seen.isReached && seen.count === 0)) this.#seen = null;
    else if (seen.isReached) seen.count--;
    return this.#seen !== null;
  }

  /** After a resumption the last, incomplete line comes again, as a whole; anything else completes it as it is. */
  #renew(stamp: number): void {
    this.#isStale = false;
    const piece = this.pieces[this.pieces.length - 1]!;
    const start = piece.starts[piece.count - 1]!;
    if (Object.is(stamp, this.stamp(this.end - 1))) {
      this.#size -= piece.used - start;
      piece.used = start;
      return;
    }
    this.#extend(Uint8Array.of(NEWLINE), 0, 0, true);
    this.#addLine(stamp);
  }

  #addLine(stamp: number): void {
    const before = this.end > this.first ? this.times.at(this.end - 1) : -Infinity;
    const time = stamp > before ? stamp : before;
    if (!Object.is(time, stamp) && !this.#stamps) this.#stamps = this.#copyTimes();
    this.#stamps?.push(stamp);
    this.times.push(time);
    let piece = this.pieces[this.pieces.length - 1];
    if (!piece || piece.used > PIECE_BYTES - (PIECE_BYTES >> 6)) piece = this.#addPiece(PIECE_BYTES, this.end - 1);
    if (piece.count === piece.starts.length) {
      const grown = new Uint32Array(piece.count * 2);
      grown.set(piece.starts);
      piece.starts = grown;
    }
    piece.starts[piece.count++] = piece.used;
    piece.last = time;
    this.#size += LINE_COST;
    this.isOpen = true;
  }

  #copyTimes(): Times {
    const copy = new Times();
    copy.values = this.times.values.slice();
    copy.first = this.times.first;
    copy.end = this.times.end;
    return copy;
  }

  #addPiece(capacity: number, first: number): Piece {
    const piece = {
      first,
      count: 0,
      bytes: new Uint8Array(capacity),
      used: 0,
      starts: new Uint32Array(1024),
      last: -Infinity,
      hasEscape: false,
    };
    this.pieces.push(piece);
    return piece;
  }

  /** Add bytes to the open line, and its newline if it ends here. */
  #extend(data: Uint8Array, from: number, end: number, isEnd: boolean): void {
    const length = end - from + (isEnd ? 1 : 0);
    let piece = this.pieces[this.pieces.length - 1]!;
    if (piece.used + length > piece.bytes.length) piece = this.#makeRoom(piece, length);
    if (end > from) {
      const part = data.subarray(from, end);
      piece.bytes.set(part, piece.used);
      if (!piece.hasEscape && part.indexOf(ESCAPE) >= 0) piece.hasEscape = true;
    }
    piece.used += length;
    this.#size += length;
    if (isEnd) {
      piece.bytes[piece.used - 1] = NEWLINE;
      this.isOpen = false;
    }
  }

  /** A line lies in one piece: move the open line to a new one, or let a piece grow that has nothing else. */
  #makeRoom(piece: Piece, length: number): Piece {
    const start = piece.starts[piece.count - 1]!;
    const open = piece.bytes.subarray(start, piece.used);
    const capacity = Math.max(PIECE_BYTES, (open.length + length) * 2);
    if (piece.count === 1) {
      const grown = new Uint8Array(capacity);
      grown.set(open);
      piece.bytes = grown;
      return piece;
    }
    const next = this.#addPiece(capacity, this.end - 1);
    next.bytes.set(open);
    next.used = open.length;
    next.count = 1;
    next.last = piece.last;
    next.hasEscape = piece.hasEscape;
    piece.count--;
    piece.used = start;
    piece.last = this.times.at(this.end - 2);
    return next;
  }
}

/** Whether a chunk's last bytes may be the beginning of a stamp. */
function isCutStamp(data: Uint8Array, from: number, end: number): boolean {
  return end - from < MAX_STAMP && data.indexOf(SPACE, from) < 0;
}

function cost(piece: Piece): number {
  return piece.used + piece.count * LINE_COST;
}
