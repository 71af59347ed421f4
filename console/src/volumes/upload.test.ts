import { describe, expect, it } from 'vitest';
import { ApiError } from '../app/api.ts';
import { crumbs, encodeName, filesUrl, join } from './client.ts';
import { PART_BYTES, upload, type Fields, type Transport } from './upload.ts';

class Server implements Transport {
  bytes = 0;
  puts: number[] = [];
  failures: ApiError[] = [];
  /** The answer to a part that has come is lost. */
  loses = false;

  offset() {
    return Promise.resolve(this.bytes);
  }
  put(fields: Fields, offset: number, part: Blob) {
    this.puts.push(offset);
    const failure = this.failures.shift();
    if (failure) return Promise.reject(failure);
    this.bytes += part.size;
    if (this.loses) {
      this.loses = false;
      return Promise.reject(new ApiError({ code: 0, reason: 'Unreachable' }));
    }
    return Promise.resolve({ offset: this.bytes, done: this.bytes === fields.size });
  }
  cancel() {
    return Promise.resolve();
  }
  pause() {
    return Promise.resolve();
  }
}

const file = new File([new Uint8Array(2 * PART_BYTES + 10)], 'f');
const fields: Fields = { path: 'f', size: file.size, id: '1', replace: false };
const run = (server: Server, isStopped = () => false) => upload(file, fields, server, { isStopped, onProgress: () => undefined });

describe('an upload', () => {
  it('sends all parts', async () => {
    const server = new Server();
    expect(await run(server)).toBe('done');
    expect([server.bytes, server.puts]).toEqual([file.size, [0, PART_BYTES, 2 * PART_BYTES]]);
  });

  it('goes on where it was stopped', async () => {
    const server = new Server();
    expect(await run(server, () => server.bytes > 0)).toBe('stopped');
    expect(await run(server)).toBe('done');
    expect(server.puts).toEqual([0, PART_BYTES, 2 * PART_BYTES]);
  });

  it('sends a part again that was cut or damaged, and none that has come', async () => {
    const server = new Server();
    server.failures = [new ApiError({ code: 503 }), new ApiError({ code: 422 })];
    expect(await run(server)).toBe('done');
    expect(server.puts.slice(0, 3)).toEqual([0, 0, 0]);
    const lossy = new Server();
    lossy.loses = true;
    await run(lossy);
    expect(lossy.puts).toEqual([0, PART_BYTES, 2 * PART_BYTES]);
  });

  it('ends with what the server refuses', async () => {
    const server = new Server();
    server.failures = [new ApiError({ code: 409, message: 'exists already' })];
    await expect(run(server)).rejects.toThrow('exists already');
  });
});

describe('paths of files', () => {
  it('carry names that are no text', () => {
    expect(encodeName('a b/\udcff&é')).toBe('a%20b%2F%FF%26%C3%A9');
    expect(filesUrl({ namespace: 'n', claim: 'c' }, 'list', { path: 'a&b' })).toBe('/api/volumes/n/c/list?path=a%26b');
  });

  it('are joined and taken apart', () => {
    expect([join('', 'a'), join('a', 'b')]).toEqual(['a', 'a/b']);
    expect(crumbs('a/b')).toEqual([{ name: 'a', path: 'a' }, { name: 'b', path: 'a/b' }]);
  });
});
