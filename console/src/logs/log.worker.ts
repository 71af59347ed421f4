// Runs a LogSession beside the page: bytes in, frames out.

import type { FromWorker, ToWorker } from './messages.ts';
import { LogSession } from './session.ts';

/** How long one turn may scan before it looks for messages again, and how often frames are made. */
const TURN_MS = 12;
const FRAME_MS = 50;

interface Scope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker): void;
}

const scope = self as unknown as Scope;
const session = new LogSession((message) => scope.postMessage(message), Math.floor(Date.now() / 1000));
let timer: ReturnType<typeof setTimeout> | undefined;
let framedAt = 0;
let pause = FRAME_MS;

function schedule(): void {
  if (timer !== undefined || !session.hasWork) return;
  timer = setTimeout(run, session.isScanning ? 0 : Math.max(0, framedAt + pause - performance.now()));
}

function run(): void {
  timer = undefined;
  const begin = performance.now();
  if (session.isScanning) session.scan(() => performance.now() - begin < TURN_MS);
  const middle = performance.now();
  if (!session.isScanning || middle - framedAt >= pause) {
    session.tick();
    framedAt = performance.now();
    // A large merge is done less often, so that bytes are never kept waiting.
    pause = Math.max(FRAME_MS, 3 * (framedAt - middle));
  }
  schedule();
}

scope.onmessage = (event) => {
  session.receive(event.data);
  schedule();
};
