import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HANG_MS, LogClient, type WorkerPort } from './client.ts';
import type { ToWorker, ViewSpec } from './messages.ts';

const SPEC: ViewSpec = { logs: [], query: { text: '(a+)+$', isRegex: true, matchCase: false }, onlyMatching: false, context: 0, level: 0, from: '', to: '' };

function start() {
  const worker: WorkerPort & { isBusy: boolean } = {
    isBusy: false,
    onmessage: null,
    postMessage: (message: ToWorker) => {
      if (message.type === 'line' && !worker.isBusy) worker.onmessage?.({ data: { type: 'line', id: message.id, states: [], earlier: 0, text: '' } });
    },
    terminate: vi.fn(),
  };
  const client = new LogClient(worker);
  const onHang = vi.fn();
  client.onHang = onHang;
  return { worker, client, onHang };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it('notices an expression that never ends, and only that', async () => {
  const { worker, client, onHang } = start();
  client.setView(1, SPEC);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(onHang).not.toHaveBeenCalled();
  worker.isBusy = true;
  await vi.advanceTimersByTimeAsync(HANG_MS + 6000);
  expect(onHang).toHaveBeenCalled();
});

it('asks nothing of the worker while no expression is searched', async () => {
  const { worker, client, onHang } = start();
  worker.isBusy = true;
  client.setView(1, SPEC);
  client.setView(1, { ...SPEC, query: { ...SPEC.query, isRegex: false } });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(onHang).not.toHaveBeenCalled();
});
