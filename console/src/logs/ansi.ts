// One line of a log, made safe to look at: colours become classes, every other control character becomes visible text.

export interface Segment {
  text: string;
  /** Class names, or an empty string. */
  style: string;
}

export interface ShownLine {
  segments: Segment[];
  /** How many earlier states of the line carriage returns have overwritten. */
  earlier: number;
  /** Characters that were left out because the line is too long. */
  hidden: number;
}

const SGR = /\x1b\[([0-9;:]*)m/g;

// C0 but tab, DEL, C1, soft hyphen, zero-width and bidi characters, line separators, BOM, interlinear and tag characters.
const INVISIBLE =
  /[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** The visible form of a character that has none: ^G for a bell, as terminals write it, or its number. */
export function visible(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x20 || code === 0x7f) return `^${String.fromCharCode(code ^ 0x40)}`;
  return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
}

/** The states of a line that carriage returns separate, empty ones left out; at least one. */
export function statesOf(line: string): string[] {
  if (!line.includes('\r')) return [line];
  const states = line.split('\r').filter((state) => state !== '');
  return states.length > 0 ? states : [''];
}

/** Return a line as it is shown: its last state, at most `limit` characters of it. */
export function showLine(line: string, limit: number): ShownLine {
  const states = statesOf(line);
  const style = new Style();
  // Colours that an earlier state switched on are still on.
  for (const state of states.slice(0, -1)) for (const match of state.matchAll(SGR)) style.apply(match[1]!);
  const last = states[states.length - 1]!;
  const hidden = Math.max(0, last.length - limit);
  const text = hidden > 0 ? last.slice(0, isPair(last, limit) ? limit - 1 : limit) : last;
  return { segments: segmentsOf(text, style), earlier: states.length - 1, hidden };
}

function isPair(text: string, at: number): boolean {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff;
}

/** Cut a text at its colour sequences. */
export function segmentsOf(text: string, style: Style = new Style()): Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  if (text.includes('\x1b'))
    for (const match of text.matchAll(SGR)) {
      addVisible(segments, text.slice(from, match.index), style.classes());
      style.apply(match[1]!);
      from = match.index + match[0].length;
    }
  addVisible(segments, text.slice(from), style.classes());
  return segments;
}

function addVisible(segments: Segment[], text: string, style: string): void {
  let from = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    add(segments, text.slice(from, match.index), style);
    add(segments, visible(match[0]), 'log-control');
    from = match.index + match[0].length;
  }
  add(segments, text.slice(from), style);
}

function add(segments: Segment[], text: string, style: string): void {
  if (text === '') return;
  const last = segments[segments.length - 1];
  if (last && last.style === style) last.text += text;
  else segments.push({ text, style });
}

/** Cut segments where the search matches, and mark those parts. */
export function withHits(segments: Segment[], rangesOf: (text: string) => number[]): Segment[] {
  const ranges = rangesOf(segments.map((segment) => segment.text).join(''));
  if (ranges.length === 0) return segments;
  const cut: Segment[] = [];
  let offset = 0;
  let index = 0;
  for (const { text, style } of segments) {
    let at = 0;
    while (at < text.length) {
      // Even numbers of bounds lie before text that does not match.
      while (index < ranges.length && ranges[index]! <= offset + at) index++;
      const end = Math.min(text.length, (ranges[index] ?? Infinity) - offset);
      const isHit = index % 2 === 1;
      cut.push({ text: text.slice(at, end), style: isHit ? `${style} log-hit`.trim() : style });
      at = end;
    }
    offset += text.length;
  }
  return cut;
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
const FLAGS: Record<number, string> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'inverse', 9: 'strike' };
const OFF: Record<number, string[]> = { 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'], 27: ['inverse'], 29: ['strike'] };

/** What SGR sequences have switched on. Colours of the large palettes become the nearest of the sixteen. */
export class Style {
  #foreground = '';
  #background = '';
  readonly #flags = new Set<string>();

  apply(parameters: string): void {
    const codes = parameters.split(/[;:]/).map((part) => (part === '' ? 0 : Number(part)));
    for (let index = 0; index < codes.length; index++) {
      const code = codes[index]!;
      if (code === 38 || code === 48) index = this.#extended(codes, index);
      else this.#single(code);
    }
  }

  classes(): string {
    const names = [...this.#flags].sort().map((flag) => `log-${flag}`);
    if (this.#foreground) names.push(`log-fg-${this.#foreground}`);
    if (this.#background) names.push(`log-bg-${this.#background}`);
    return names.join(' ');
  }

  #single(code: number): void {
    const flag = FLAGS[code];
    if (code === 0) this.#clear();
    else if (flag) this.#flags.add(flag);
    else if (OFF[code]) for (const name of OFF[code]) this.#flags.delete(name);
    else if (code === 39) this.#foreground = '';
    else if (code === 49) this.#background = '';
    else if (code >= 30 && code <= 37) this.#foreground = NAMES[code - 30]!;
    else if (code >= 90 && code <= 97) this.#foreground = `bright-${NAMES[code - 90]!}`;
    else if (code >= 40 && code <= 47) this.#background = NAMES[code - 40]!;
    else if (code >= 100 && code <= 107) this.#background = `bright-${NAMES[code - 100]!}`;
  }

  #clear(): void {
    this.#foreground = this.#background = '';
    this.#flags.clear();
  }

  /** 38;5;n and 38;2;r;g;b, and 48 likewise; return the index of the last code used. */
  #extended(codes: number[], index: number): number {
    const isForeground = codes[index] === 38;
    const isIndexed = codes[index + 1] === 5;
    const end = index + (isIndexed ? 2 : codes[index + 1] === 2 ? 4 : 1);
    const parts = codes.slice(index + 2, end + 1);
    const colour = isIndexed ? indexed(parts[0] ?? NaN) : nearest(parts[0] ?? NaN, parts[1] ?? NaN, parts[2] ?? NaN);
    if (isForeground) this.#foreground = colour;
    else this.#background = colour;
    return end;
  }
}

function indexed(colour: number): string {
  if (colour < 8) return NAMES[colour] ?? '';
  if (colour < 16) return `bright-${NAMES[colour - 8]!}`;
  if (colour >= 232) {
    const grey = (colour - 232) * 10 + 8;
    return nearest(grey, grey, grey);
  }
  const part = colour - 16;
  return nearest(Math.floor(part / 36) * 51, (Math.floor(part / 6) % 6) * 51, (part % 6) * 51);
}

/** One of the sixteen colours for red, green and blue from 0 to 255; an empty string if they are no numbers. */
function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  if (most !== most) return '';
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most < 64 ? 'black' : most < 144 ? 'bright-black' : most < 216 ? 'white' : 'bright-white';
  const half = (most + least) / 2;
  const bits = (red > half ? 1 : 0) | (green > half ? 2 : 0) | (blue > half ? 4 : 0);
  return `${most > 215 ? 'bright-' : ''}${NAMES[bits]!}`;
}
