/** The frames of Kubernetes' exec over a WebSocket (v5.channel.k8s.io): one byte of channel, then the data. */

export const PROTOCOL = 'v5.channel.k8s.io';

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const RESIZE = 4;

// Runs bash where the image has it. Programs learn from TERM which sequences they may send.
const SHELL = 'export TERM=xterm-256color; command -v bash >/dev/null 2>&1 && exec bash; exec sh';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** How a command ended: its exit code, or why it did not run. */
export interface Ending {
  exitCode: number | null;
  message: string;
}

export type Frame = { type: 'output'; data: Uint8Array } | { type: 'end'; ending: Ending } | { type: 'other' };

export function inputFrame(text: string): Uint8Array<ArrayBuffer> {
  return framed(STDIN, encoder.encode(text));
}

/** A frame for keys that xterm reports as bytes of a binary string, such as mouse reports. */
export function binaryInputFrame(text: string): Uint8Array<ArrayBuffer> {
  return framed(
    STDIN,
    Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff),
  );
}

export function resizeFrame(columns: number, rows: number): Uint8Array<ArrayBuffer> {
  return framed(RESIZE, encoder.encode(JSON.stringify({ Width: columns, Height: rows })));
}

function framed(channel: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(data.length + 1);
  frame[0] = channel;
  frame.set(data, 1);
  return frame;
}

export function readFrame(buffer: ArrayBuffer): Frame {
  const bytes = new Uint8Array(buffer);
  const channel = bytes[0];
  if (channel === STDOUT || channel === STDERR) return { type: 'output', data: bytes.subarray(1) };
  if (channel === ERROR && bytes.length > 1) return { type: 'end', ending: readEnding(decoder.decode(bytes.subarray(1))) };
  return { type: 'other' };
}

interface ExecStatus {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

function readEnding(text: string): Ending {
  let status: ExecStatus;
  try {
    status = JSON.parse(text) as ExecStatus;
  } catch {
    return { exitCode: null, message: text };
  }
  if (status.status === 'Success') return { exitCode: 0, message: '' };
  const code = status.details?.causes?.find((cause) => cause.reason === 'ExitCode')?.message ?? '';
  return { exitCode: /^\d+$/.test(code) ? Number(code) : null, message: status.message ?? '' };
}

export interface Target {
  namespace: string;
  pod: string;
  container: string;
}

/** The URL of a shell in a container, with a terminal. */
export function shellUrl(target: Target, base: string): string {
  const { namespace, pod, container } = target;
  const path = ['api', 'v1', 'namespaces', namespace, 'pods', pod, 'exec'].map(encodeURIComponent).join('/');
  const url = new URL(`/k8s/${path}`, base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  for (const flag of ['stdin', 'stdout', 'tty']) url.searchParams.set(flag, 'true');
  url.searchParams.set('container', container);
  for (const word of ['sh', '-c', SHELL]) url.searchParams.append('command', word);
  return url.href;
}
