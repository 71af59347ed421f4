// What the pane and its worker tell each other.

import type { Segment } from './ansi.ts';
import type { Query } from './search.ts';

export interface ViewSpec {
  /** Logs by number; their order decides between equal times. */
  logs: number[];
  query: Query;
  onlyMatching: boolean;
  /** Lines to show around a match. */
  context: number;
  level: number;
  /** Stamps; empty for no bound. */
  from: string;
  to: string;
}

export type Target =
  | { kind: 'hit'; row: number; direction: 1 | -1 }
  | { kind: 'traceback'; log: number }
  | { kind: 'line'; log: number; stamp: string; nth: number };

export interface Viewport {
  /** Counts what the pane has asked for; a frame says which of it it answers. */
  request: number;
  from: number;
  count: number;
  /** The row that stays where it is when lines come in above it. */
  anchor: number;
  isFollowing: boolean;
}

export type ToWorker =
  | { type: 'open'; log: number; replaces?: number }
  | { type: 'bytes'; log: number; bytes: Uint8Array; receipt: number }
  | { type: 'resume'; log: number }
  | { type: 'end'; log: number }
  | { type: 'close'; log: number }
  | { type: 'view'; view: number; spec: ViewSpec }
  | { type: 'unview'; view: number }
  | ({ type: 'viewport'; view: number } & Viewport)
  /** The last frame is on the screen: another one may come. */
  | { type: 'drawn'; view: number }
  | { type: 'seek'; view: number; id: number; target: Target }
  | { type: 'line'; log: number; line: number; id: number };

export interface ShownRow {
  row: number;
  log: number;
  line: number;
  /** RFC 3339 with nine digits, or empty. */
  stamp: string;
  /** Its place among the lines of the log with this stamp. */
  nth: number;
  segments: Segment[];
  earlier: number;
  hidden: number;
  level: number;
}

export interface LogStatus {
  log: number;
  lines: number;
  bytes: number;
  dropped: number;
  /** Of the first and the last line that has one; empty before. */
  first: string;
  last: string;
}

/** Everything a pane needs to draw itself once. */
export interface Frame {
  type: 'frame';
  view: number;
  total: number;
  hits: number;
  /** How many hits are before the first row of the frame. */
  hitsBefore: number;
  isSearching: boolean;
  /** What is wrong with the expression; empty if nothing is. */
  error: string;
  /** What was asked for, and where that is now. */
  request: number;
  from: number;
  anchor: number;
  isFollowing: boolean;
  rows: ShownRow[];
  logs: LogStatus[];
}

export type FromWorker =
  | Frame
  | { type: 'receipt'; receipt: number }
  | { type: 'replaced'; log: number; by: number }
  | { type: 'loading'; log: number; lines: number; bytes: number }
  /** `hit` counts the hits before the row. */
  | { type: 'found'; id: number; row: number | null; log: number; line: number; hit: number }
  | { type: 'line'; id: number; states: Segment[][]; earlier: number; text: string };
