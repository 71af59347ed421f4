/** What can be shown of a file. Only pictures without scripts are shown as pictures; all else is text in text nodes. */

export type FileKind = 'image' | 'text' | 'events' | 'binary';

const TEXT = /\.(txt|log|md|py|ipynb|ya?ml|json|jsonl|csv|tsv|toml|ini|cfg|conf|sh|html?|xml|svg|js|ts|tsx|c|cc|cpp|h|hpp|go|rs|java|tex|sql|env|lock)$/i;
const IMAGE = /\.(png|jpe?g|gif|webp|bmp)$/i;

export function kindOf(name: string): FileKind {
  if (name.includes('tfevents')) return 'events';
  if (IMAGE.test(name)) return 'image';
  return TEXT.test(name) ? 'text' : 'binary';
}

const SIGNATURES: readonly [type: string, bytes: readonly (number | null)[]][] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
  ['image/bmp', [0x42, 0x4d]],
];

/** The type of a picture by its first bytes, whatever its name says; `null` if it is none that we show. */
export function imageType(bytes: Uint8Array): string | null {
  const match = SIGNATURES.find(([, signature]) => signature.every((byte, index) => byte === null || bytes[index] === byte));
  return match === undefined ? null : match[0];
}

/** Bytes as text; `null` if they are none. The last character may be cut. */
export function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return null;
  }
}

/** Bytes as base64, a part at a time: too many arguments would not fit on the stack. */
export function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(binary);
}
