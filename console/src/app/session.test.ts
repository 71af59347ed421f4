// @vitest-environment happy-dom
import { expect, test } from 'vitest';
import { allows, readMe } from './session.tsx';

test('rights are read as RBAC means them', () => {
  const rules = [
    { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'pods/log'] },
    { verbs: ['*'], apiGroups: ['batch.tensorstack.dev'], resources: ['*'] },
  ];
  expect(allows(rules, 'get', '', 'pods')).toBe(true);
  expect(allows(rules, 'create', '', 'pods/exec')).toBe(false);
  expect(allows(rules, 'delete', 'batch.tensorstack.dev', 'mpijobs')).toBe(true);
  expect(allows(rules, 'delete', 'tensorstack.dev', 'notebooks')).toBe(false);
});

test('an answer without namespaces is a person who may not list them', () => {
  expect(readMe({ name: 'ann', namespaces: null, cluster: { embedded: true } })).toMatchObject({
    name: 'ann',
    namespaces: null,
    cluster: { isEmbedded: true, version: '' },
  });
});
