/** The values of an application as YAML, and what a person wrote there. */
import { parseDocument, stringify } from 'yaml';
import { isTree, type Tree } from './schema.ts';

const MOST_ALIASES = 100;

/** What is wrong with a text. Without a message: it is YAML, but not names and values. Lines and columns start at 1. */
export interface TextProblem {
  message: string;
  line: number;
  column: number;
}

export function printValues(values: Tree): string {
  return Object.keys(values).length === 0 ? '' : stringify(values, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** The values that a text means, or what is wrong with it. */
export function readValues(text: string): { values: Tree } | { problem: TextProblem } {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) return { problem: { message: error.message.split('\n')[0] ?? '', line: error.linePos?.[0].line ?? 1, column: error.linePos?.[0].col ?? 1 } };
  try {
    const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES }) ?? {};
    return isTree(value) ? { values: value } : { problem: { message: '', line: 1, column: 1 } };
  } catch (failure) {
    return { problem: { message: failure instanceof Error ? failure.message : String(failure), line: 1, column: 1 } };
  }
}
