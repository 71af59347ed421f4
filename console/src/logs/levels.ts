// A guess at how bad a line is, from what Python, glog, Go and JavaScript programs write.

import { LineCounter, type Scanner } from './search.ts';

export const NO_LEVEL = 0;
export const WARNING = 1;
export const ERROR = 2;
/** The first line of a traceback; the lines below it are errors. */
export const TRACEBACK = 3;

const TRACE = /Traceback \(most recent call last\)/;
const SERIOUS =
  /\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE)\b|\b(?:[Ee]rror|[A-Z]\w*(?:Error|Exception))\b:|\bpanic: |^(?:\[\w+\]: ?)?[EF]\d{4} \d\d:|level=(?:error|fatal)|"level": ?"(?:error|fatal)"|Segmentation fault|core dumped/;
const CAUTION = /\bWARN(?:ING)?\b|\b[Ww]arning\b:|\b[A-Z]\w*Warning\b:|^(?:\[\w+\]: ?)?W\d{4} \d\d:|level=warn|"level": ?"warn/;
/** Every line that could have a level has one of these: one quick pass, and few lines to look at closely. */
const CANDIDATE = /Traceback|ERROR|FATAL|CRITICAL|PANIC|SEVERE|rror|xception|panic|WARN|arning|^(?:\[\w+\]: ?)?[EFW]\d{4} |"?level"?[=:]|Segm|core dump/gm;

export function levelOf(line: string): number {
  if (TRACE.test(line)) return TRACEBACK;
  if (SERIOUS.test(line)) return ERROR;
  return CAUTION.test(line) ? WARNING : NO_LEVEL;
}

/** Marks lines with their level; a traceback's lines up to its exception are errors. */
export class LevelScanner implements Scanner {
  /** What stands before "Traceback" on each of its lines, such as "[rank0]: "; null outside of one. */
  #prefix: string | null = null;

  reset(): void {
    this.#prefix = null;
  }

  scan(text: string, mark: (index: number, value: number) => void): void {
    const counter = new LineCounter(text);
    let begin = this.#prefix === null ? 0 : this.#traceback(text, 0, counter, mark);
    const expression = new RegExp(CANDIDATE);
    for (;;) {
      expression.lastIndex = begin;
      const match = begin < text.length ? expression.exec(text) : null;
      if (!match) return;
      const index = counter.advance(match.index);
      const start = text.lastIndexOf('\n', match.index - 1) + 1;
      const end = Math.min(counter.next, text.length + 1);
      const line = text.slice(match.index === 0 ? 0 : start, end - 1);
      const level = levelOf(line);
      if (level !== NO_LEVEL) mark(index, level);
      begin = end;
      if (level !== TRACEBACK) continue;
      this.#prefix = line.slice(0, line.search(TRACE));
      begin = this.#traceback(text, begin, counter, mark);
    }
  }

  /** Mark the indented lines from `begin` on and the exception behind them; return where the traceback ends. */
  #traceback(text: string, begin: number, counter: LineCounter, mark: (index: number, value: number) => void): number {
    const prefix = this.#prefix!;
    let at = begin;
    while (at < text.length) {
      const index = counter.advance(at);
      const end = Math.min(counter.next, text.length + 1);
      const line = text.slice(at, end - 1);
      const rest = line.startsWith(prefix) ? line.slice(prefix.length) : '';
      const isInside = /^\s/.test(rest);
      if (rest !== '' && !TRACE.test(rest)) {
        mark(index, ERROR);
        at = end;
      }
      if (isInside) continue;
      this.#prefix = null;
      break;
    }
    return at;
  }
}
