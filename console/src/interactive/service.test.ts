import { expect, test } from 'vitest';
import { claimsOf, imageOf, listPath, logPlaces, ownerOf, ownerUrl, pauseReason, phaseOf, sizeOf, type Service } from './service.ts';

const service = (more: Partial<Service> = {}): Service => ({
  metadata: { name: 'x', namespace: 'default', uid: 'u' },
  ...more,
});

test('a TensorBoard says where its logs are, each place once', () => {
  const spec = {
    trainingLogFilesets: ['t9k://pvc/data/log', 't9k://minio/key/bucket/log'],
    logDir: {
      pvc: [{ name: 'data', subPath: ['./log/', 'runs/one'] }, { name: 'whole' }],
      s3: { uri: ['s3://bucket/log/'] },
      http: { url: ['http://example.com/log'] },
    },
  };

  expect(logPlaces(service({ spec }))).toEqual([
    'data/log',
    'key/bucket/log',
    'data/runs/one',
    'whole',
    's3://bucket/log/',
    'http://example.com/log',
  ]);
  expect(logPlaces(service())).toEqual([]);
});

test('a notebook says its claims, image and size', () => {
  const container = { name: 'notebook', image: 'jupyter/lab', resources: { requests: { cpu: '2' }, limits: { cpu: '4', memory: '8Gi', 'nvidia.com/gpu': '1' } } };
  const volumes = [{ persistentVolumeClaim: { claimName: 'work' } }, {}, { persistentVolumeClaim: { claimName: 'work' } }];
  const notebook = service({ spec: { template: { spec: { containers: [{ name: 'side' }, container], volumes } } } });

  expect(claimsOf(notebook)).toEqual(['work']);
  expect(imageOf(notebook)).toBe('jupyter/lab');
  expect(sizeOf(notebook)).toEqual({ cpu: '2', memory: '8Gi', devices: [['nvidia.com/gpu', '1']] });
  expect(sizeOf(service())).toEqual({ devices: [] });
});

test('the phase follows what was asked for before the controller has seen it', () => {
  expect(phaseOf(service())).toBe('Initializing');
  expect(phaseOf(service({ status: { phase: 'Running' } }))).toBe('Running');
  expect(phaseOf(service({ status: { phase: 'Running' }, spec: { suspend: true } }))).toBe('Paused');
  const deleted = service({ status: { phase: 'Running' } });
  deleted.metadata.deletionTimestamp = '2030-01-01T00:00:00Z';
  expect(phaseOf(deleted)).toBe('Deleting');
});

test('a paused one says why', () => {
  const idle = { phase: 'Paused', conditions: [{ type: 'Suspended', status: 'True', reason: 'Idle' }] };

  expect(pauseReason(service({ status: idle }))).toBe('Idle');
  expect(pauseReason(service({ status: idle, spec: { suspend: true } }))).toBe('Suspended');
});

test('only a controlling owner counts', () => {
  const owned = service();
  owned.metadata.ownerReferences = [
    { kind: 'Pod', name: 'other' },
    { kind: 'PyTorchTrainingJob', name: 'mnist', controller: true },
  ];

  expect(ownerOf(owned)?.name).toBe('mnist');
  expect(ownerOf(service())).toBeUndefined();
});

test('the list of one namespace or of all', () => {
  expect(listPath('TensorBoard', 'a b')).toBe('/apis/tensorstack.dev/v1beta1/namespaces/a%20b/tensorboards');
  expect(listPath('Notebook', '')).toBe('/apis/tensorstack.dev/v1beta1/notebooks');
});

test('the owner of a TensorBoard is a job or an application, each with its page', () => {
  expect(ownerUrl('team', { kind: 'PyTorchTrainingJob', name: 'mnist' })).toBe('/jobs/team/PyTorchTrainingJob/mnist');
  expect(ownerUrl('team', { kind: 'TrainingApp', name: 'points' })).toBe('/apps/team/points');
});
