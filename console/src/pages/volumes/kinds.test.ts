import { expect, it } from 'vitest';
import { base64, imageType, kindOf, textOf } from './kinds.ts';

it('files are known by their names', () => {
  expect(['a.PNG', 'train.py', 'events.out.tfevents.1', 'model.pt', 'page.html', 'x.svg'].map(kindOf)).toEqual(['image', 'text', 'events', 'binary', 'text', 'text']);
});

it('a picture is known by its bytes, and a page that calls itself one is none', () => {
  expect(imageType(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d]))).toBe('image/png');
  expect(imageType(new TextEncoder().encode('RIFF0000WEBPVP8'))).toBe('image/webp');
  expect(imageType(new TextEncoder().encode('<svg onload="alert(1)">'))).toBeNull();
  expect(imageType(new Uint8Array())).toBeNull();
});

it('text is UTF-8 without zeros, and may end in the middle of a character', () => {
  expect(textOf(new TextEncoder().encode('日本').subarray(0, 5))).toBe('日');
  expect(textOf(new Uint8Array([1, 0, 2]))).toBeNull();
  expect(textOf(new Uint8Array([0xff, 0xfe, 0x41]))).toBeNull();
});

it('bytes become base64', () => {
  expect(base64(new Uint8Array(100_000).fill(65)).length).toBe(Math.ceil(100_000 / 3) * 4);
});
