/** Uploads in parts: each is checked, a cut one is sent again, and a file that is chosen again goes on where it stopped. */
import { api, ApiError } from '../app/api.ts';
import { filesUrl, type ClaimRef } from './client.ts';

export const PART_BYTES = 8 * 1024 * 1024;
const MOST_TRIES = 6;
const PAUSE = 1000;

export type UploadState = 'waiting' | 'running' | 'paused' | 'done' | 'failed' | 'exists';

export interface UploadItem {
  id: number;
  path: string;
  size: number;
  sent: number;
  state: UploadState;
  error?: unknown;
}

export interface Transport {
  offset(fields: Fields): Promise<number>;
  put(fields: Fields, offset: number, part: Blob, digest: string): Promise<{ offset: number; done: boolean }>;
  cancel(fields: Fields): Promise<void>;
  pause(milliseconds: number): Promise<void>;
}

export interface Fields {
  path: string;
  size: number;
  /** Names this content: another file of the same name and size is another upload. */
  id: string;
  replace: boolean;
}

export function transport(ref: ClaimRef): Transport {
  const url = (fields: Fields, more: Record<string, string | number> = {}) => filesUrl(ref, 'upload', { ...fields, ...more });
  return {
    offset: async (fields) => (await api.get<{ offset: number }>(url(fields))).offset,
    put: (fields, offset, part, digest) => send(url(fields, { offset, ...(digest === '' ? {} : { sha256: digest }) }), part),
    cancel: async (fields) => void (await api.delete(url(fields))),
    pause: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
  };
}

async function send(url: string, part: Blob): Promise<{ offset: number; done: boolean }> {
  let response: Response;
  try {
    response = await fetch(url, { method: 'PUT', body: part, headers: { 'X-Paceline': '1', 'Content-Type': 'application/octet-stream' }, credentials: 'same-origin' });
  } catch (error) {
    throw new ApiError({ code: 0, reason: 'Unreachable', message: String(error) });
  }
  const body = (await response.json().catch(() => ({}))) as { message?: string; offset: number; done: boolean };
  if (!response.ok) throw new ApiError({ code: response.status, message: body.message ?? response.statusText });
  return body;
}

/** SHA-256 in hexadecimal; empty where the browser has none (a page without a secure origin). */
async function digestOf(part: Blob): Promise<string> {
  if (globalThis.crypto?.subtle === undefined) return '';
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await part.arrayBuffer()));
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Send a file until all of it is there. `isStopped` is asked between parts. */
export async function upload(
  file: File,
  fields: Fields,
  wire: Transport,
  { isStopped, onProgress }: { isStopped: () => boolean; onProgress: (sent: number) => void },
): Promise<'done' | 'stopped'> {
  let offset = await wire.offset(fields);
  onProgress(offset);
  for (let isDone = false; !isDone; ) {
    if (isStopped()) return 'stopped';
    const part = file.slice(offset, offset + PART_BYTES);
    const answer = await sendPart(fields, offset, part, wire);
    [offset, isDone] = [answer.offset, answer.done];
    onProgress(offset);
  }
  return 'done';
}

/** Whether a failure may pass by itself: the network, a server that restarts, a part that was damaged on its way. */
function mayPass(error: unknown): boolean {
  return error instanceof ApiError && [0, 422, 500, 502, 503, 504].includes(error.code);
}

async function sendPart(fields: Fields, offset: number, part: Blob, wire: Transport): Promise<{ offset: number; done: boolean }> {
  const digest = await digestOf(part);
  for (let tries = 1; ; tries += 1) {
    try {
      return await wire.put(fields, offset, part, digest);
    } catch (error) {
      if (!mayPass(error) || tries >= MOST_TRIES) throw error;
    }
    await wire.pause(PAUSE * tries);
    // The part may have come although its answer was lost.
    const arrived = await wire.offset(fields).catch(() => offset);
    if (arrived > offset) return { offset: arrived, done: false };
  }
}

export function identity(file: File): string {
  return `${file.lastModified}-${file.size}`;
}
