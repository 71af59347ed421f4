import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, valueAt } from './document.ts';
import { controlsOf, FORMS, formOf } from './kinds.ts';
import { copyText, emptyText, newReplica, nextName, templateText } from './starts.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..', 'examples');

describe('the form of a kind', () => {
  it.each(FORMS)('$kind has every path once', (form) => {
    const paths = controlsOf(form).map((control) => `${control.path.join('.')} ${control.as}`);
    expect(new Set(paths).size).toBe(paths.length);
  });

  it.each(FORMS)('$kind starts with a text of its own', (form) => {
    const [part] = parse(emptyText(form.kind)).parts;
    expect(part!.kind).toBe(form.kind);
    expect(part!.get(['apiVersion'])).toBe(form.apiVersion);
    if (form.replicas) {
      const replica = form.replicas.isList ? [...form.replicas.at, 0] : form.replicas.at;
      expect(part!.get([...replica, ...form.replicas.template, 'spec', 'containers', 0, 'image'])).toBeTruthy();
    }
  });

  it('there is one for every kind of the examples', () => {
    for (const file of readdirSync(ROOT, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.yaml')) continue;
      const { kind } = parse(readFileSync(join(ROOT, file), 'utf8')).parts[0]!;
      // The page of a volume creates its Explorer; nobody writes one by hand.
      if (kind !== 'Explorer') expect(formOf(kind), file).toBeDefined();
    }
  });

  it('there is one for old names, with their own addresses', () => {
    expect(formOf('TensorFlowJob')).toMatchObject({ kind: 'TensorFlowJob', plural: 'tensorflowjobs', title: 'TensorFlow' });
    expect(['constructor', '__proto__', 'toString'].map(formOf)).toEqual([undefined, undefined, undefined]);
    expect(formOf('Pod')).toBeUndefined();
  });

  it('a replica of another type has the container of its kind', () => {
    expect(newReplica(formOf('MPIJob')!, 'launcher', 'x')).toMatchObject({ type: 'launcher', template: { spec: { containers: [{ name: 'launcher', image: 'x' }] } } });
    expect(newReplica(formOf('TensorFlowTrainingJob')!, 'ps')).toMatchObject({ template: { spec: { containers: [{ name: 'tensorflow' }] } } });
  });
});

describe('a copy', () => {
  const job = {
    apiVersion: 'batch.tensorstack.dev/v1beta1',
    kind: 'GenericJob',
    metadata: {
      annotations: { 'paceline.dev/asked-by': 'admin', mine: 'kept' },
      creationTimestamp: '2030-01-01T00:00:00Z',
      labels: { 'paceline.dev/app': 'x' },
      managedFields: [{}],
      name: 'hello',
      namespace: 'default',
      ownerReferences: [{}],
      resourceVersion: '1',
      uid: 'u',
    },
    spec: { runMode: { pause: { enabled: true } }, suspend: true, successRules: [{ worker: [0] }] },
    status: { phase: 'Failed' },
  };

  it('is what its author would write, under another name and not paused', () => {
    const [part] = parse(copyText(job, 'hello-2')).parts;
    expect(part!.value).toEqual({
      apiVersion: job.apiVersion,
      kind: 'GenericJob',
      metadata: { name: 'hello-2', namespace: 'default', annotations: { mine: 'kept' } },
      spec: { successRules: [{ worker: [0] }] },
    });
    expect(valueAt(job, ['status', 'phase'])).toBe('Failed');
  });

  it.each([
    ['mnist', [], 'mnist-2'],
    ['mnist-2', [], 'mnist-3'],
    ['mnist', ['mnist-2', 'mnist-3'], 'mnist-4'],
    ['a-1b', [], 'a-1b-2'],
  ])('of %s is called otherwise', (name, taken, expected) => expect(nextName(name, taken)).toBe(expected));

  it('a template begins with its values', () => {
    expect(parse(templateText('model-training', '0.1.0', { workers: 2 })).parts[0]!.get(['spec', 'values', 'workers'])).toBe(2);
  });
});
