/** What the server says about a text: faults and warnings with their places, and what its objects ask for. */
import { spell, type Path } from './document.ts';

/** Lines and columns start at 1; columns count UTF-16 units. */
export interface Span {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
}

export interface Finding {
  severity: 'error' | 'warning';
  /** Number of the object in the text; -1 for text that is not YAML. */
  object: number;
  path: string;
  reason: string;
  message: string;
  span: Span;
  fix: { text: string; span: Span } | null;
}

export interface CheckedObject {
  line: number;
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  totals: { replicas: number; requests: Record<string, number>; limits: Record<string, number> };
}

export interface Checked {
  objects: CheckedObject[];
  findings: Finding[];
  more: number;
}

export const UNCHECKED: Checked = { objects: [], findings: [], more: 0 };

/** The findings at a path and below it. */
export function findingsAt(findings: readonly Finding[], path: Path): Finding[] {
  const spelled = spell(path);
  return findings.filter(({ path: at }) => at === spelled || at.startsWith(`${spelled}.`) || at.startsWith(`${spelled}[`));
}

/** An empty field that must not be empty is said to be so in the person's words; the server's are of what a value must look like. */
export function sayMissing(findings: readonly Finding[], path: Path, words: string): Finding[] {
  const spelled = spell(path);
  return findings.map((finding) => (finding.path === spelled && finding.severity === 'error' ? { ...finding, message: words } : finding));
}

/** Faults before warnings. */
export function worst(findings: readonly Finding[]): Finding | undefined {
  return findings.find((finding) => finding.severity === 'error') ?? findings[0];
}

/** Where a span begins and ends in a text. */
export function offsets(text: string, span: Span): [number, number] {
  const lines = text.split('\n');
  const at = (line: number, column: number) => {
    const before = lines.slice(0, Math.max(line - 1, 0)).reduce((sum, content) => sum + content.length + 1, 0);
    return Math.min(before + Math.min(column - 1, lines[line - 1]?.length ?? 0), text.length);
  };
  return [at(span.line, span.column), at(span.endLine, span.endColumn)];
}

export function applyFix(text: string, fix: NonNullable<Finding['fix']>): string {
  const [from, to] = offsets(text, fix.span);
  return text.slice(0, from) + fix.text + text.slice(to);
}

/** The sums over all objects. */
export function totalsOf(objects: readonly CheckedObject[]): { replicas: number; requests: Record<string, number> } {
  const requests: Record<string, number> = {};
  let replicas = 0;
  for (const object of objects) {
    replicas += object.totals.replicas;
    for (const [name, amount] of Object.entries(object.totals.requests)) requests[name] = (requests[name] ?? 0) + amount;
  }
  return { replicas, requests };
}
