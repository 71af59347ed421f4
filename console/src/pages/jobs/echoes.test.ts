import { expect, test } from 'vitest';
import { Echoes } from './echoes.ts';

test('a text that comes back late is not one from elsewhere', () => {
  const echoes = new Echoes();
  echoes.send('b');
  echoes.send('ba');
  expect(echoes.accept('b')).toBe(true);
  expect(echoes.accept('ba')).toBe(true);
});

test('a text that was overtaken is not waited for', () => {
  const echoes = new Echoes();
  echoes.send('b');
  echoes.send('ba');
  expect(echoes.accept('ba')).toBe(true);
  expect(echoes.accept('b')).toBe(false);
});

test('a text from elsewhere ends the wait for all others', () => {
  const echoes = new Echoes();
  echoes.send('b');
  expect(echoes.accept('')).toBe(false);
  expect(echoes.accept('b')).toBe(false);
});
