import { afterEach, expect, test, vi } from 'vitest';
import { api, ApiError, onUnauthorized } from './api.ts';

afterEach(() => vi.unstubAllGlobals());

function answers(status: number, body: string, type = 'application/json') {
  const fetch = vi.fn((_path: string, _options: RequestInit) =>
    Promise.resolve(new Response(body, { status, headers: { 'Content-Type': type } })),
  );
  vi.stubGlobal('fetch', fetch);
  return fetch;
}

test('a request that changes something says that it comes from the page', async () => {
  const fetch = answers(200, '{"ok":true}');
  await expect(api.patch('/k8s/x', { spec: 1 })).resolves.toEqual({ ok: true });
  const [, options] = fetch.mock.calls[0] ?? [];
  expect(options).toMatchObject({
    method: 'PATCH',
    body: '{"spec":1}',
    headers: { 'X-Paceline': '1', 'Content-Type': 'application/merge-patch+json' },
  });
});

test('a refusal is thrown as the Status that the server sends', async () => {
  answers(422, JSON.stringify({ kind: 'Status', code: 422, reason: 'Invalid', message: 'no', details: { causes: [{ field: 'spec.x' }] } }));
  const error = await api.post('/k8s/x', {}).catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ code: 422, reason: 'Invalid', message: 'no', details: { causes: [{ field: 'spec.x' }] } });
});

test('an answer that is no Status, and none at all, are errors as well', async () => {
  answers(502, '<html>bad gateway</html>', 'text/html');
  await expect(api.get('/api/me')).rejects.toMatchObject({ code: 502 });
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  await expect(api.get('/api/me')).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
});

test('the end of the session is told to whoever listens', async () => {
  answers(401, '{"code":401}');
  const listener = vi.fn();
  const stop = onUnauthorized(listener);
  await api.get('/api/me').catch(() => undefined);
  stop();
  await api.get('/api/me').catch(() => undefined);
  expect(listener).toHaveBeenCalledTimes(1);
});
