/** The text of an empty form: what every object of a kind needs. */
import { printBlock } from './document.ts';
import { formOf, type KindForm, type Replicas } from './kinds.ts';

const IMAGES: Record<string, string> = {
  PyTorchTrainingJob: 'pytorch/pytorch:2.13.0',
  TensorFlowTrainingJob: 'tensorflow/tensorflow:2.14.0',
  XGBoostTrainingJob: 't9kpublic/xgboost:2.1',
  ColossalAIJob: 'hpcaitech/colossalai:0.5.0',
  DeepSpeedJob: 'deepspeed/deepspeed:latest',
  Notebook: 'jupyter/minimal-notebook:latest',
};
const RESOURCES = { limits: { cpu: '1', memory: '1Gi' } };

function template(form: KindForm, replicas: Replicas, type: string): unknown {
  const name = replicas.container === 'type' ? type : replicas.container;
  const command = replicas.hasCommand ? { command: ['python'], args: ['train.py'] } : {};
  return { spec: { containers: [{ name, image: IMAGES[form.kind] ?? 'python:3.11', ...command, resources: RESOURCES }] } };
}

/** A replica of another type, as the form adds it. */
export function newReplica(form: KindForm, type: string, image = ''): unknown {
  const replicas = form.replicas!;
  const made = template(form, replicas, type) as { spec: { containers: [{ image: string }] } };
  if (image !== '') made.spec.containers[0].image = image;
  return { type, replicas: 1, template: made };
}

function specOf(form: KindForm): unknown {
  const { replicas } = form;
  switch (form.kind) {
    case 'PersistentVolumeClaim':
      return { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } };
    case 'TensorBoard':
      return { logDir: { pvc: [{ name: '', subPath: ['log'] }] } };
    case 'Notebook':
      return { template: template(form, replicas!, 'notebook') };
    case 'DeepSpeedJob':
      return { config: { slotsPerWorker: 1, run: { python: ['train.py'] } }, worker: { replicas: 1, template: template(form, replicas!, 'worker') } };
    case 'MPIJob':
      return { mpiConfig: { script: ['python3', 'train.py'] }, replicaSpecs: [newReplica(form, 'worker')] };
    case 'ColossalAIJob':
      return { torchConfig: { procPerWorker: 1, script: ['train.py'] }, replicaSpecs: [newReplica(form, 'worker')] };
    case 'GenericJob':
      return { successRules: [{ worker: [0] }], failureRules: [{ worker: [0] }], replicaSpecs: [newReplica(form, 'worker')] };
    case 'XGBoostTrainingJob':
      return { replicaSpecs: [newReplica(form, 'master'), newReplica(form, 'worker')] };
    case 'BeamJob':
      return {
        flinkClusterTemplate: { spec: { flinkVersion: '1.10.1', taskManager: { replicas: 1 } } },
        jobTemplate: { spec: { template: template(form, replicas!, 'main') } },
      };
    case 'TrainingApp':
      return { template: { name: 'model-training' }, values: {} };
    default:
      return { replicaSpecs: [newReplica(form, 'worker')] };
  }
}

export function emptyText(kind: string): string {
  const form = formOf(kind);
  if (!form) return '';
  return `${printBlock({ apiVersion: form.apiVersion, kind: form.kind, metadata: { name: '' }, spec: specOf(form) })}\n`;
}

/** The text of an application that starts with a template. */
export function templateText(name: string, version: string, values: unknown): string {
  const form = formOf('TrainingApp')!;
  const spec = { template: { name, version }, values };
  return `${printBlock({ apiVersion: form.apiVersion, kind: form.kind, metadata: { name: '' }, spec })}\n`;
}

const OWN = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp', 'managedFields', 'ownerReferences', 'selfLink', 'finalizers', 'deletionGracePeriodSeconds'];
const WRITTEN_BY_US = /^(kubectl\.kubernetes\.io\/last-applied-configuration|paceline\.dev\/.*|pv\.kubernetes\.io\/.*)$/;

/** A copy of an object as its author would write it: without status, identity and what controllers added; not paused. */
export function copyText(source: unknown, name: string): string {
  const object = structuredClone(source) as { metadata: Record<string, unknown>; spec?: Record<string, unknown>; status?: unknown };
  delete object.status;
  for (const field of OWN) delete object.metadata[field];
  for (const field of ['annotations', 'labels']) {
    const entries = Object.entries((object.metadata[field] ?? {}) as object).filter(([key]) => !WRITTEN_BY_US.test(key));
    if (entries.length > 0) object.metadata[field] = Object.fromEntries(entries);
    else delete object.metadata[field];
  }
  object.metadata.name = name;
  if (object.spec) {
    delete object.spec.suspend;
    const mode = object.spec.runMode as { pause?: { enabled?: unknown; enable?: unknown } } | undefined;
    if (mode?.pause) {
      delete mode.pause.enabled;
      delete mode.pause.enable;
      if (Object.keys(mode.pause).length === 0) delete mode.pause;
      if (Object.keys(mode).length === 0) delete object.spec.runMode;
    }
    delete object.spec.volumeName;
  }
  const { apiVersion, kind, metadata, ...rest } = object as unknown as Record<string, unknown>;
  return `${printBlock({ apiVersion, kind, metadata: ordered(metadata as object), ...rest })}\n`;
}

function ordered(metadata: object): object {
  const { name, namespace, ...rest } = metadata as Record<string, unknown>;
  return { name, ...(namespace === undefined ? {} : { namespace }), ...rest };
}

/** A name for a copy: mnist → mnist-2, mnist-2 → mnist-3. */
export function nextName(name: string, taken: readonly string[] = []): string {
  const match = /^(.*?)-(\d{1,4})$/.exec(name);
  const stem = match?.[1] ?? name;
  let number = match ? Number(match[2]) + 1 : 2;
  while (taken.includes(`${stem}-${number}`)) number++;
  return `${stem}-${number}`;
}
