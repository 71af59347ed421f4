/** The forms of all kinds, as data: what is shown, in which order, with which control. All other fields are in the tree. */
import type { Words } from '../app/i18n.tsx';
import type { Path } from './document.ts';

export type FieldWord = keyof Words['create']['fields'];
export type GroupWord = keyof Words['create']['groups'];

interface Base {
  path: Path;
  label: FieldWord;
  isRequired?: boolean;
  /** An example of what to type; the same in all languages. */
  example?: string;
}

export type Control =
  | (Base & { as: 'text' | 'words' | 'quantity' | 'switch' | 'pairs' | 'claim' | 'secret' | 'logs' | 'rules' | 'ports' | 'storageClass' })
  | (Base & { as: 'number'; min?: number; max?: number })
  /** A choice; without `initial` the field may be left out. */
  | (Base & { as: 'select'; options: readonly string[]; initial?: string })
  /** Hyperparameters: names and values that keep the type in which they are written. */
  | (Base & { as: 'values' });

/** Controls that belong together; with a toggle they are there only while it is on. */
export interface Group {
  id: GroupWord;
  /** On: the field at the path is true, or is present; switching it on writes `on`. */
  toggle?: { path: Path; kind: 'enabled' | 'present'; on: unknown };
  /** One of several objects below a path, as claim, directory or bucket. */
  choice?: { path: Path; options: readonly { id: GroupWord; name: string; on: unknown; controls: readonly Control[] }[] };
  controls: readonly Control[];
}

export interface Panel {
  id: GroupWord;
  controls: readonly Control[];
  groups: readonly Group[];
}

/** Where the replicas of a kind are, and what their form has. */
export interface Replicas {
  /** A list of replica types, or one object. */
  at: Path;
  isList: boolean;
  /** The path of the pod template below a replica. */
  template: Path;
  /** The types that there are; empty for any. */
  types: readonly string[];
  /** The name of the container that trains; `type` for that of the replica type. */
  container: string;
  hasReplicas: boolean;
  restart: 'text' | 'object' | 'none';
  /** Whether the container's own command is run; launchers run another one. */
  hasCommand: boolean;
  hasWeight?: boolean;
}

export interface KindForm {
  kind: string;
  apiVersion: string;
  plural: string;
  /** What the create menu calls it. */
  title: string;
  /** Where people find it after it was created. */
  category: 'job' | 'workbench' | 'storage' | 'app';
  replicas?: Replicas;
  panels: readonly Panel[];
  /** Panels below the replicas. */
  more: readonly Panel[];
}

const JOBS = 'batch.tensorstack.dev/v1beta1';
const CLEAN_UP = ['None', 'All', 'Unfinished'] as const;
const DEADLINES: readonly Control[] = [
  { as: 'number', path: ['spec', 'runPolicy', 'activeDeadlineSeconds'], label: 'activeDeadline', min: 1 },
  { as: 'number', path: ['spec', 'runPolicy', 'startingDeadlineSeconds'], label: 'startingDeadline', min: 1 },
  { as: 'number', path: ['spec', 'runPolicy', 'stallSeconds'], label: 'stall', min: 1 },
  { as: 'number', path: ['spec', 'runPolicy', 'ttlSecondsAfterFinished'], label: 'ttl', min: 0 },
];
const NAME: Control = { as: 'text', path: ['metadata', 'name'], label: 'name', isRequired: true, example: 'torch-mnist' };
const LABELS: Control = { as: 'pairs', path: ['metadata', 'labels'], label: 'labels' };
const SCOPE: Control = { as: 'select', path: ['spec', 'restartScope'], label: 'restartScope', options: ['Gang', 'Replica'] };

const SCHEDULER: Group = {
  id: 'scheduler',
  toggle: { path: ['spec', 'scheduler', 't9kScheduler'], kind: 'present', on: { queue: 'default' } },
  controls: [
    { as: 'text', path: ['spec', 'scheduler', 't9kScheduler', 'queue'], label: 'queue', isRequired: true, example: 'default' },
    { as: 'number', path: ['spec', 'scheduler', 't9kScheduler', 'priority'], label: 'priority', min: 0, max: 100 },
  ],
};
const DEBUG: Group = { id: 'debug', toggle: { path: ['spec', 'runMode', 'debug', 'enabled'], kind: 'enabled', on: true }, controls: [] };
const TRAINING_POLICY: Group = {
  id: 'runPolicy',
  controls: [
    { as: 'number', path: ['spec', 'runPolicy', 'backoffLimit'], label: 'backoffLimit', min: 0, example: '3' },
    { as: 'select', path: ['spec', 'runPolicy', 'cleanUpPolicy'], label: 'cleanUp', options: CLEAN_UP },
    SCOPE,
    ...DEADLINES,
  ],
};
const LAUNCHER_POLICY: Group = {
  id: 'runPolicy',
  controls: [{ as: 'switch', path: ['spec', 'runPolicy', 'cleanUpWorkers'], label: 'cleanUpWorkers' }, SCOPE, ...DEADLINES],
};
const TENSORBOARD: Group = {
  id: 'tensorboard',
  toggle: { path: ['spec', 'tensorboardSpec'], kind: 'present', on: { trainingLogFilesets: ['t9k://pvc/'] } },
  controls: [
    { as: 'logs', path: ['spec', 'tensorboardSpec'], label: 'logs', isRequired: true },
    { as: 'text', path: ['spec', 'tensorboardSpec', 'image'], label: 'image', example: 't9kpublic/tensorboard:2.17.0' },
  ],
};
const ELASTIC: Group = {
  id: 'elastic',
  toggle: { path: ['spec', 'elastic', 'enabled'], kind: 'enabled', on: true },
  controls: [
    { as: 'number', path: ['spec', 'elastic', 'minReplicas'], label: 'minReplicas', min: 1, isRequired: true },
    { as: 'number', path: ['spec', 'elastic', 'maxReplicas'], label: 'maxReplicas', min: 1, isRequired: true },
    { as: 'number', path: ['spec', 'elastic', 'expectedReplicas'], label: 'expectedReplicas', min: 1, isRequired: true },
  ],
};
const TORCHRUN: Group = {
  id: 'torchrun',
  toggle: { path: ['spec', 'torchrunConfig', 'enabled'], kind: 'enabled', on: true },
  controls: [
    { as: 'number', path: ['spec', 'torchrunConfig', 'maxRestarts'], label: 'maxRestarts', min: 0, example: '3' },
    { as: 'text', path: ['spec', 'torchrunConfig', 'procPerNode'], label: 'procPerNode', example: '4' },
    { as: 'select', path: ['spec', 'torchrunConfig', 'rdzvBackend'], label: 'rdzvBackend', options: ['c10d', 'etcd', 'etcd-v2'] },
    { as: 'words', path: ['spec', 'torchrunConfig', 'extraOptions'], label: 'extraOptions' },
  ],
};

function bucket(path: Path): readonly Control[] {
  return [
    { as: 'text', path: [...path, 'bucket', 'url'], label: 'bucketUrl', example: 's3://bucket/folder' },
    { as: 'text', path: [...path, 'bucket', 'endpoint'], label: 'endpoint' },
    { as: 'secret', path: [...path, 'bucket', 'secret'], label: 'secret' },
  ];
}

function place(id: 'input' | 'output'): Group {
  const path = ['spec', id] as const;
  return {
    id,
    controls: [],
    choice: {
      path,
      options: [
        {
          id: 'claim',
          name: 'claim',
          on: '',
          controls: [
            { as: 'claim', path: [...path, 'claim'], label: 'claim', isRequired: true },
            { as: 'text', path: [...path, 'path'], label: 'folder', example: 'data' },
          ],
        },
        { id: 'directory', name: 'directory', on: '', controls: [{ as: 'text', path: [...path, 'directory'], label: 'directory', isRequired: true, example: '/data' }] },
        { id: 'bucket', name: 'bucket', on: { url: '' }, controls: bucket(path) },
      ],
    },
  };
}

const SOURCE: Group = {
  id: 'source',
  toggle: { path: ['spec', 'source'], kind: 'present', on: { git: { url: '' } } },
  controls: [
    { as: 'text', path: ['spec', 'source', 'git', 'url'], label: 'gitUrl', isRequired: true, example: 'https://example.org/team/code.git' },
    { as: 'text', path: ['spec', 'source', 'git', 'revision'], label: 'revision', example: 'main' },
    { as: 'text', path: ['spec', 'source', 'git', 'directory'], label: 'sourceDirectory' },
    { as: 'secret', path: ['spec', 'source', 'git', 'secret'], label: 'gitSecret' },
    { as: 'text', path: ['spec', 'source', 'requirements'], label: 'requirements', example: 'requirements.txt' },
    { as: 'claim', path: ['spec', 'source', 'cache'], label: 'cache' },
  ],
};
const HYPERPARAMETERS: Group = {
  id: 'hyperparameters',
  controls: [
    { as: 'values', path: ['spec', 'hyperparameters', 'values'], label: 'values' },
    { as: 'select', path: ['spec', 'hyperparameters', 'passedAs'], label: 'passedAs', options: ['Flags', 'Environment'] },
    { as: 'pairs', path: ['spec', 'hyperparameters', 'names'], label: 'names' },
  ],
};
const DATA: readonly Panel[] = [
  { id: 'data', controls: [], groups: [SOURCE, place('input'), place('output')] },
  { id: 'hyperparameters', controls: HYPERPARAMETERS.controls, groups: [] },
];

function basics(...groups: Group[]): readonly Panel[] {
  return [{ id: 'basics', controls: [NAME, LABELS], groups }];
}

const LIST: Omit<Replicas, 'container'> = {
  at: ['spec', 'replicaSpecs'],
  isList: true,
  template: ['template'],
  types: [],
  hasReplicas: true,
  restart: 'text',
  hasCommand: true,
};

export const FORMS: readonly KindForm[] = [
  {
    kind: 'PyTorchTrainingJob',
    apiVersion: JOBS,
    plural: 'pytorchtrainingjobs',
    title: 'PyTorch',
    category: 'job',
    replicas: { ...LIST, container: 'pytorch', hasWeight: true },
    panels: basics(TORCHRUN, ELASTIC, TRAINING_POLICY, SCHEDULER, TENSORBOARD, DEBUG),
    more: DATA,
  },
  {
    kind: 'TensorFlowTrainingJob',
    apiVersion: JOBS,
    plural: 'tensorflowtrainingjobs',
    title: 'TensorFlow',
    category: 'job',
    replicas: { ...LIST, container: 'tensorflow', types: ['chief', 'worker', 'ps', 'evaluator'] },
    panels: [
      {
        id: 'basics',
        controls: [NAME, LABELS, { as: 'select', path: ['spec', 'successPolicy'], label: 'successPolicy', options: ['AllWorkers'] }],
        groups: [TRAINING_POLICY, SCHEDULER, TENSORBOARD, DEBUG],
      },
    ],
    more: DATA,
  },
  {
    kind: 'XGBoostTrainingJob',
    apiVersion: JOBS,
    plural: 'xgboosttrainingjobs',
    title: 'XGBoost',
    category: 'job',
    replicas: { ...LIST, container: 'xgboost', types: ['master', 'worker'] },
    panels: basics(TRAINING_POLICY, SCHEDULER, DEBUG),
    more: DATA,
  },
  {
    kind: 'MPIJob',
    apiVersion: JOBS,
    plural: 'mpijobs',
    title: 'MPI',
    category: 'job',
    replicas: { ...LIST, container: 'type', types: ['launcher', 'worker'], restart: 'object', hasCommand: false },
    panels: [
      {
        id: 'basics',
        controls: [NAME, LABELS],
        groups: [
          {
            id: 'mpi',
            controls: [
              { as: 'words', path: ['spec', 'mpiConfig', 'script'], label: 'script', isRequired: true, example: 'python3 train.py' },
              { as: 'words', path: ['spec', 'mpiConfig', 'extraArgs'], label: 'extraArgs', example: '-N 2' },
              { as: 'text', path: ['spec', 'mpiConfig', 'home'], label: 'mpiHome' },
              { as: 'pairs', path: ['spec', 'mpiConfig', 'mca'], label: 'mca' },
            ],
          },
          LAUNCHER_POLICY,
          SCHEDULER,
          DEBUG,
        ],
      },
    ],
    more: DATA,
  },
  {
    kind: 'GenericJob',
    apiVersion: JOBS,
    plural: 'genericjobs',
    title: 'Generic',
    category: 'job',
    replicas: { ...LIST, container: 'worker', restart: 'object' },
    panels: [
      {
        id: 'basics',
        controls: [
          NAME,
          LABELS,
          { as: 'rules', path: ['spec', 'successRules'], label: 'successRules', isRequired: true, example: 'worker[0]' },
          { as: 'rules', path: ['spec', 'failureRules'], label: 'failureRules', isRequired: true, example: 'worker[0]' },
          { as: 'select', path: ['spec', 'cleanUpPolicy'], label: 'cleanUp', options: CLEAN_UP },
          { as: 'ports', path: ['spec', 'service', 'ports'], label: 'ports' },
        ],
        groups: [{ id: 'runPolicy', controls: [SCOPE, ...DEADLINES] }, SCHEDULER, DEBUG],
      },
    ],
    more: DATA,
  },
  {
    kind: 'ColossalAIJob',
    apiVersion: JOBS,
    plural: 'colossalaijobs',
    title: 'ColossalAI',
    category: 'job',
    replicas: { ...LIST, container: 'type', types: ['launcher', 'worker'], restart: 'object', hasCommand: false },
    panels: [
      {
        id: 'basics',
        controls: [NAME, LABELS],
        groups: [
          {
            id: 'torch',
            controls: [
              { as: 'words', path: ['spec', 'torchConfig', 'script'], label: 'script', isRequired: true, example: 'train.py --epochs 3' },
              { as: 'number', path: ['spec', 'torchConfig', 'procPerWorker'], label: 'procPerNode', min: 1, example: '1' },
              { as: 'words', path: ['spec', 'torchConfig', 'extraArgs'], label: 'extraArgs' },
            ],
          },
          LAUNCHER_POLICY,
          SCHEDULER,
          DEBUG,
        ],
      },
    ],
    more: DATA,
  },
  {
    kind: 'DeepSpeedJob',
    apiVersion: JOBS,
    plural: 'deepspeedjobs',
    title: 'DeepSpeed',
    category: 'job',
    replicas: { ...LIST, at: ['spec', 'worker'], isList: false, container: 'worker', types: ['worker'], hasCommand: false },
    panels: [
      {
        id: 'basics',
        controls: [NAME, LABELS],
        groups: [
          {
            id: 'deepspeed',
            controls: [],
            choice: {
              path: ['spec', 'config', 'run'],
              options: [
                { id: 'python', name: 'python', on: [], controls: [{ as: 'words', path: ['spec', 'config', 'run', 'python'], label: 'script', isRequired: true, example: 'train.py --deepspeed' }] },
                { id: 'module', name: 'module', on: [], controls: [{ as: 'words', path: ['spec', 'config', 'run', 'module'], label: 'script', isRequired: true, example: 'team.train' }] },
                { id: 'exec', name: 'exec', on: [], controls: [{ as: 'words', path: ['spec', 'config', 'run', 'exec'], label: 'script', isRequired: true }] },
              ],
            },
          },
          {
            id: 'launcher',
            controls: [
              { as: 'number', path: ['spec', 'config', 'slotsPerWorker'], label: 'slotsPerWorker', min: 1 },
              { as: 'select', path: ['spec', 'config', 'autotune'], label: 'autotune', options: ['none', 'tune', 'run'] },
              { as: 'words', path: ['spec', 'config', 'otherArgs'], label: 'extraArgs' },
              { as: 'text', path: ['spec', 'config', 'customCommand'], label: 'customCommand' },
              { as: 'switch', path: ['spec', 'disableCustomEnv'], label: 'disableCustomEnv' },
            ],
          },
          ELASTIC,
          TRAINING_POLICY,
          SCHEDULER,
          DEBUG,
        ],
      },
    ],
    more: DATA,
  },
  {
    kind: 'BeamJob',
    apiVersion: JOBS,
    plural: 'beamjobs',
    title: 'Beam',
    category: 'job',
    replicas: { ...LIST, at: ['spec', 'jobTemplate', 'spec'], isList: false, container: 'main', types: ['batchjob'], hasReplicas: false, restart: 'none' },
    panels: [
      {
        id: 'basics',
        controls: [NAME, LABELS],
        groups: [
          {
            id: 'flink',
            controls: [
              { as: 'text', path: ['spec', 'flinkClusterTemplate', 'spec', 'flinkVersion'], label: 'flinkVersion', example: '1.10.1' },
              { as: 'text', path: ['spec', 'flinkClusterTemplate', 'spec', 'image', 'name'], label: 'image' },
              { as: 'number', path: ['spec', 'flinkClusterTemplate', 'spec', 'taskManager', 'replicas'], label: 'taskManagers', min: 1 },
              { as: 'switch', path: ['spec', 'runPolicy', 'cleanUpCluster'], label: 'cleanUpCluster' },
            ],
          },
          SCHEDULER,
          DEBUG,
        ],
      },
    ],
    more: [],
  },
  {
    kind: 'Notebook',
    apiVersion: 'tensorstack.dev/v1beta1',
    plural: 'notebooks',
    title: 'Notebook',
    category: 'workbench',
    replicas: { ...LIST, at: ['spec'], isList: false, container: 'notebook', types: ['notebook'], hasReplicas: false, restart: 'none', hasCommand: false },
    panels: [
      {
        id: 'basics',
        controls: [{ ...NAME, example: 'desk' }, LABELS, { as: 'number', path: ['spec', 'idleSeconds'], label: 'idleSeconds', min: 0, example: '90000' }],
        groups: [SCHEDULER],
      },
    ],
    more: [],
  },
  {
    kind: 'TensorBoard',
    apiVersion: 'tensorstack.dev/v1beta1',
    plural: 'tensorboards',
    title: 'TensorBoard',
    category: 'workbench',
    panels: [
      {
        id: 'basics',
        controls: [
          { ...NAME, example: 'curves' },
          { as: 'logs', path: ['spec'], label: 'logs', isRequired: true },
          { as: 'text', path: ['spec', 'image'], label: 'image', example: 't9kpublic/tensorboard:2.17.0' },
          { as: 'number', path: ['spec', 'idleSeconds'], label: 'idleSeconds', min: 0, example: '90000' },
          LABELS,
        ],
        groups: [],
      },
    ],
    more: [],
  },
  {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    plural: 'persistentvolumeclaims',
    title: 'PVC',
    category: 'storage',
    panels: [
      {
        id: 'basics',
        controls: [
          { ...NAME, example: 'tutorial' },
          { as: 'quantity', path: ['spec', 'resources', 'requests', 'storage'], label: 'size', isRequired: true, example: '1Gi' },
          { as: 'select', path: ['spec', 'accessModes', 0], label: 'accessMode', options: ['ReadWriteMany', 'ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteOncePod'], initial: 'ReadWriteMany' },
          { as: 'storageClass', path: ['spec', 'storageClassName'], label: 'storageClass' },
          LABELS,
        ],
        groups: [],
      },
    ],
    more: [],
  },
  {
    kind: 'TrainingApp',
    apiVersion: 'paceline.dev/v1beta1',
    plural: 'trainingapps',
    title: 'Application',
    category: 'app',
    panels: [{ id: 'basics', controls: [{ ...NAME, example: 'mnist' }, LABELS], groups: [] }],
    more: [],
  },
];

// A map: the kind is what somebody typed, and an object would answer to `constructor`.
const ALIASES = new Map<string, [kind: string, plural: string]>([
  ['TensorFlowJob', ['TensorFlowTrainingJob', 'tensorflowjobs']],
  ['DeepspeedJob', ['DeepSpeedJob', 'deepspeed-jobs']],
]);

/** The form of a kind; of an old name, that of the kind it stands for. */
export function formOf(kind: string): KindForm | undefined {
  const [known, plural] = ALIASES.get(kind) ?? [kind, ''];
  const form = FORMS.find((candidate) => candidate.kind === known);
  return form && plural !== '' ? { ...form, kind, plural } : form;
}

/** Every control of a form that stands outside the replicas. */
export function controlsOf(form: KindForm): Control[] {
  return [...form.panels, ...form.more].flatMap((panel) => [
    ...panel.controls,
    ...panel.groups.flatMap((group) => [...group.controls, ...(group.choice?.options.flatMap((option) => option.controls) ?? [])]),
  ]);
}
