import { stringify } from 'yaml';

/** A value as people write it, objects as YAML; `null` if there is none. */
export function valueText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'object' ? stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd() : String(value);
}
