// @vitest-environment happy-dom
import { expect, test } from 'vitest';
import { takeLoginCode } from './loginCode.ts';

test('a code does not stay in the address', () => {
  history.replaceState(null, '', '/login?next=/jobs#code=secret');
  takeLoginCode();
  expect(location.href).not.toContain('secret');
  expect(location.pathname + location.search).toBe('/login?next=/jobs');
});

test('the fragment of another page is its own', () => {
  history.replaceState(null, '', '/jobs#code=x');
  takeLoginCode();
  expect(location.hash).toBe('#code=x');
});
