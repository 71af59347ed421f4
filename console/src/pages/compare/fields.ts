/** The fields of several objects side by side. */

export interface FieldRow {
  path: string;
  /** One text per object; `null`: it does not have the field. */
  values: (string | null)[];
  differs: boolean;
}

type Json = unknown;
const MOST_DEPTH = 40;

/** Every leaf of the objects by its path, in the order in which they come; lists of things with names go by name. */
export function compareFields(objects: readonly Json[]): FieldRow[] {
  const columns = objects.map((object) => {
    const leaves = new Map<string, string>();
    collect(object, '', leaves, 0);
    return leaves;
  });
  const paths = [...new Set(columns.flatMap((leaves) => [...leaves.keys()]))];
  return paths.map((path) => {
    const values = columns.map((leaves) => leaves.get(path) ?? null);
    return { path, values, differs: new Set(values).size > 1 };
  });
}

function collect(value: Json, path: string, leaves: Map<string, string>, depth: number): void {
  if (value === null || value === undefined) return;
  if (Array.isArray(value) && value.every((entry) => entry !== null && typeof entry === 'object') && depth < MOST_DEPTH)
    value.forEach((entry, index) => collect(entry, `${path}[${nameOf(entry) ?? index}]`, leaves, depth + 1));
  else if (typeof value === 'object' && !Array.isArray(value) && depth < MOST_DEPTH)
    for (const [key, entry] of Object.entries(value)) collect(entry, path === '' ? key : `${path}.${key}`, leaves, depth + 1);
  else leaves.set(path, typeof value === 'string' ? value : JSON.stringify(value));
}

function nameOf(entry: object): string | undefined {
  const { name, type } = entry as { name?: unknown; type?: unknown };
  return typeof name === 'string' ? name : typeof type === 'string' ? type : undefined;
}

/** A table as CSV, for spreadsheets: cells that would be read as formulas get a quote. */
export function csvText(rows: readonly (readonly (string | null)[])[]): string {
  const cell = (text: string | null) => {
    const safe = /^[=+\-@\t\r]/.test(text ?? '') && Number.isNaN(Number(text)) ? `'${text}` : (text ?? '');
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\n`).join('');
}
