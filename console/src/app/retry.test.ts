import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fetchPart, MissingPart, retry } from './retry.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('what fails for a moment succeeds', async () => {
  const attempt = vi.fn(() => Promise.resolve('there')).mockRejectedValueOnce(new Error('network')).mockRejectedValueOnce(new Error('network'));
  const result = retry(attempt);
  await vi.advanceTimersByTimeAsync(1300);
  await expect(result).resolves.toBe('there');
  expect(attempt).toHaveBeenCalledTimes(3);
});

test('what is refused for good is not tried again', async () => {
  const attempt = vi.fn(() => Promise.reject(new Error('forbidden')));
  await expect(retry(attempt, () => false)).rejects.toThrow('forbidden');
  expect(attempt).toHaveBeenCalledTimes(1);
});

test('a part that never comes is reported as missing', async () => {
  const result = fetchPart(() => Promise.reject(new Error('404'))).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await result).toBeInstanceOf(MissingPart);
});
