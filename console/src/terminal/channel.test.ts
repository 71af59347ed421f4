import { expect, test } from 'vitest';
import { binaryInputFrame, inputFrame, readFrame, resizeFrame, shellUrl } from './channel.ts';

const frame = (channel: number, text: string) => {
  const data = new TextEncoder().encode(text);
  return Uint8Array.from([channel, ...data]).buffer;
};

test('keys travel on channel 0 as UTF-8, and mouse reports as bytes', () => {
  expect([...inputFrame('é\r')]).toEqual([0, 0xc3, 0xa9, 13]);
  expect([...binaryInputFrame('\x1b[M\xff')]).toEqual([0, 0x1b, 0x5b, 0x4d, 0xff]);
});

test('the size travels on channel 4 as Kubernetes spells it', () => {
  const bytes = resizeFrame(120, 40);

  expect(bytes[0]).toBe(4);
  expect(JSON.parse(new TextDecoder().decode(bytes.subarray(1)))).toEqual({ Width: 120, Height: 40 });
});

test('stdout and stderr are output', () => {
  for (const channel of [1, 2]) {
    const read = readFrame(frame(channel, 'hi'));
    expect(read.type === 'output' && new TextDecoder().decode(read.data)).toBe('hi');
  }
});

test('the status channel says how the shell ended', () => {
  const failure = { status: 'Failure', message: 'command terminated', details: { causes: [{ reason: 'ExitCode', message: '137' }] } };

  expect(readFrame(frame(3, '{"status":"Success"}'))).toEqual({ type: 'end', ending: { exitCode: 0, message: '' } });
  expect(readFrame(frame(3, JSON.stringify(failure)))).toEqual({
    type: 'end',
    ending: { exitCode: 137, message: 'command terminated' },
  });
  expect(readFrame(frame(3, '{"status":"Failure","message":"no such container"}'))).toEqual({
    type: 'end',
    ending: { exitCode: null, message: 'no such container' },
  });
  expect(readFrame(frame(3, 'broken'))).toEqual({ type: 'end', ending: { exitCode: null, message: 'broken' } });
});

test('empty and unknown frames are nothing', () => {
  expect(readFrame(new ArrayBuffer(0))).toEqual({ type: 'other' });
  expect(readFrame(frame(3, ''))).toEqual({ type: 'other' });
  expect(readFrame(frame(9, 'x'))).toEqual({ type: 'other' });
});

test('the URL stays on the console, and a strange name cannot lead elsewhere', () => {
  const url = new URL(shellUrl({ namespace: 'a/../b', pod: 'x?y', container: 'c&d=1' }, 'http://paceline.localhost:7000/jobs'));

  expect(url.origin).toBe('ws://paceline.localhost:7000');
  expect(url.pathname).toBe('/k8s/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy/exec');
  expect(url.searchParams.get('container')).toBe('c&d=1');
  expect(url.searchParams.getAll('command').slice(0, 2)).toEqual(['sh', '-c']);
});
