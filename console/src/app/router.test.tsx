// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from 'vitest';
import { blockNavigation, matchRoute, navigate, navigateFromHere, pathOf } from './router.tsx';

afterEach(() => history.replaceState(null, '', '/'));

test.each([
  ['/', 'overview', {}],
  ['/jobs', 'jobs', {}],
  ['/jobs/', 'jobs', {}],
  ['/jobs/default/PyTorchTrainingJob/mnist', 'job', { namespace: 'default', kind: 'PyTorchTrainingJob', name: 'mnist' }],
  ['/jobs/default/PyTorchTrainingJob/mnist/logs', 'job', { namespace: 'default', kind: 'PyTorchTrainingJob', name: 'mnist', tab: 'logs' }],
  ['/create', 'create', {}],
  ['/create/MPIJob', 'create', { kind: 'MPIJob' }],
  ['/apps/default/digits/routes', 'app', { namespace: 'default', name: 'digits', tab: 'routes' }],
  ['/tensorboards/default/tb', 'tensorboards', { namespace: 'default', name: 'tb' }],
  ['/jobs/default', null, {}],
  ['/elsewhere', null, {}],
])('%s is the page %s', (path, page, params) => {
  expect(matchRoute(path)).toEqual({ page, params, path });
});

test('a name with a slash stays one segment', () => {
  const path = pathOf('jobs', 'default', 'MPIJob', 'a/b?c');
  expect(matchRoute(path).params.name).toBe('a/b?c');
});

test('a broken escape is taken as it is', () => {
  expect(matchRoute('/create/%E4%').params.kind).toBe('%E4%');
});

test('a page with unsaved work is asked before it is left, not when its query changes', () => {
  const isFree = vi.fn(() => false);
  const release = blockNavigation(isFree);
  navigate('/jobs');
  expect(location.pathname).toBe('/');
  navigate('/?tab=yaml');
  expect(location.search).toBe('?tab=yaml');
  expect(isFree).toHaveBeenCalledTimes(1);
  release();
  navigate('/jobs');
  expect(location.pathname).toBe('/jobs');
});

test('a request that ends after the person has left takes them nowhere', () => {
  navigate('/create/MPIJob');
  const first = navigateFromHere();
  const second = navigateFromHere();
  first('/jobs/default/MPIJob/ring');
  expect(location.pathname).toBe('/jobs/default/MPIJob/ring');
  second('/jobs/default/MPIJob/other');
  expect(location.pathname).toBe('/jobs/default/MPIJob/ring');
});
