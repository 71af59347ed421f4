// @vitest-environment happy-dom
import { expect, test } from 'vitest';
import { ownScript, plainText } from './guards.ts';

test('text with markup never becomes HTML', () => {
  expect(plainText('.a > .b { color: red }')).toBe('.a > .b { color: red }');
  expect(plainText('<img src=x onerror=alert(1)>')).toBeNull();
});

test('only scripts of the bundle become workers', () => {
  expect(ownScript('/assets/log.worker-ABC.js')).toBe('/assets/log.worker-ABC.js');
  expect(ownScript('https://elsewhere.example/assets/x.js')).toBeNull();
  expect(ownScript('/k8s/api/v1/namespaces/default/services/x/proxy/x.js')).toBeNull();
  expect(ownScript('data:text/javascript,alert(1)')).toBeNull();
});
