/** The form of the model training: its fields, what is wrong with them, and the values of the template that they mean. */
import { parseQuantity } from '../../parts/index.ts';

export const FRAMEWORKS = ['tensorflow', 'keras', 'pytorch', 'python', 'image'] as const;
export type Framework = (typeof FRAMEWORKS)[number];
export const MAX_REPLICAS = 4096;
export const MAX_GPUS = 2 ** 31 - 1;
export const TEMPLATE = 'model-training';

/** Where data come from: nothing, a claim, or a bucket by its Secret. */
export type DataSource = { sort: 'none' } | { sort: 'claim'; name: string } | { sort: 'bucket'; secret: string; url: string };

export interface Parameter {
  name: string;
  value: string;
}

export interface TrainForm {
  name: string;
  framework: Framework;
  image: string;
  distributed: boolean;
  ps: number | null;
  workers: number | null;
  gpus: number | null;
  data: DataSource;
  git: string;
  revision: string;
  directory: string;
  isPrivate: boolean;
  credential: 'password' | 'secret';
  user: string;
  password: string;
  secret: string;
  command: string;
  isMonitored: boolean;
  logDir: string;
  cpu: string;
  memory: string;
  parameters: Parameter[];
}

export const EMPTY: TrainForm = {
  name: '',
  framework: 'tensorflow',
  image: '',
  distributed: false,
  ps: 1,
  workers: 2,
  gpus: 0,
  data: { sort: 'none' },
  git: '',
  revision: '',
  directory: '',
  isPrivate: false,
  credential: 'password',
  user: '',
  password: '',
  secret: '',
  command: '',
  isMonitored: false,
  logDir: '/output/training_logs',
  cpu: '500m',
  memory: '1Gi',
  parameters: [],
};

/** Whether the framework has parameter servers. */
export function hasServers(framework: Framework): boolean {
  return framework !== 'pytorch';
}

export type Values = Record<string, unknown>;

/** The values of the template; a password is not among them, only the name of the Secret. */
export function valuesOf(form: TrainForm, secret: string): Values {
  const { data, parameters } = form;
  const git = { url: form.git.trim(), ...filled({ revision: form.revision.trim(), directory: form.directory.trim(), secret: form.isPrivate ? secret : '' }) };
  return {
    git,
    command: form.command,
    framework: form.framework === 'image' ? form.image.trim() : form.framework,
    distributed: form.distributed,
    ...(form.distributed ? { ps: hasServers(form.framework) ? (form.ps ?? 0) : 0, workers: form.workers ?? 1 } : {}),
    gpus: form.gpus ?? 0,
    ...filled({ cpu: form.cpu.trim(), memory: form.memory.trim() }),
    ...(data.sort === 'none' ? {} : { data: data.sort === 'claim' ? { claim: data.name } : filled({ secret: data.secret, bucket: data.url }) }),
    ...(form.isMonitored ? { logDir: form.logDir.trim() } : {}),
    ...(parameters.length > 0 ? { hyperparameters: Object.fromEntries(parameters.map(({ name, value }) => [name.trim(), value.trim()])) } : {}),
  };
}

function filled(texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''));
}

export type Field = Exclude<keyof TrainForm, 'distributed' | 'isPrivate' | 'credential' | 'isMonitored' | 'data' | 'framework'>;

/** What is wrong with a field: a code, and what goes into its sentence. */
export type Problem =
  | { code: 'required' | 'nameChars' | 'nameLong' | 'nameTaken' | 'image' | 'gitSsh' | 'gitUrl' | 'gitPassword' | 'revision' | 'directory' | 'logDirOutput' | 'quantity' | 'secretName' | 'parameterName' | 'parameterValue' }
  | { code: 'nameCharsTry' | 'gitSshTry' | 'logDirAbsolute'; text: string }
  | { code: 'whole'; low: number; high: number };

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const IMAGE = /^(?:[a-zA-Z0-9.-]+(?::[0-9]+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
// As git refuses them.
// eslint-disable-next-line no-control-regex
const NO_REVISION = /^-|\.\.|[\x00-\x20\x7f~^:?*[\\]|@\{|\/$|\.lock$|^\/|\/\//;
const SSH = /^(?:(?:git\+)?ssh:\/\/)?(?:[^@/]+@)?([A-Za-z0-9.-]+)(?::\d+)?[:/]+([^\s?#@]+)$/;
const NUMBER = /^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$/;

/** The first thing that is wrong with each field. `taken` are the names of applications in the project. */
export function problemsOf(form: TrainForm, taken: readonly string[]): Partial<Record<Field, Problem>> {
  const checks: [Field, Problem | null][] = [
    ['name', nameProblem(form.name, taken)],
    ['image', form.framework === 'image' ? imageProblem(form.image.trim()) : null],
    ['ps', form.distributed && hasServers(form.framework) ? wholeProblem(form.ps, 0, MAX_REPLICAS) : null],
    ['workers', form.distributed ? wholeProblem(form.workers, 1, MAX_REPLICAS) : null],
    ['gpus', wholeProblem(form.gpus, 0, MAX_GPUS)],
    ['git', gitProblem(form.git.trim())],
    ['revision', NO_REVISION.test(form.revision.trim()) ? { code: 'revision' } : null],
    ['directory', isInside(form.directory.trim()) ? null : { code: 'directory' }],
    ['user', form.isPrivate && form.credential === 'password' ? requiredProblem(form.user) : null],
    ['password', form.isPrivate && form.credential === 'password' ? requiredProblem(form.password) : null],
    ['secret', form.isPrivate && form.credential === 'secret' ? secretProblem(form.secret.trim()) : null],
    ['command', requiredProblem(form.command)],
    ['logDir', form.isMonitored ? logDirProblem(form.logDir.trim()) : null],
    ['cpu', quantityProblem(form.cpu)],
    ['memory', quantityProblem(form.memory)],
    ['parameters', form.parameters.map((_, index) => parameterProblem(form.parameters, index)).find((problem) => problem !== null) ?? null],
  ];
  return Object.fromEntries(checks.filter(([, problem]) => problem !== null));
}

function requiredProblem(text: string): Problem | null {
  return text.trim() === '' ? { code: 'required' } : null;
}

/** A name like this one that would be right; empty if there is none. */
export function betterName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
}

export function nameProblem(name: string, taken: readonly string[]): Problem | null {
  if (name === '') return { code: 'required' };
  if (name.length > 64) return { code: 'nameLong' };
  if (!LABEL.test(name)) return betterName(name) === '' ? { code: 'nameChars' } : { code: 'nameCharsTry', text: betterName(name) };
  return taken.includes(name) ? { code: 'nameTaken' } : null;
}

function imageProblem(image: string): Problem | null {
  return image === '' ? { code: 'required' } : IMAGE.test(image) ? null : { code: 'image' };
}

function secretProblem(secret: string): Problem | null {
  if (secret === '') return { code: 'required' };
  return SUBDOMAIN.test(secret) && secret.length <= 253 ? null : { code: 'secretName' };
}

function wholeProblem(value: number | null, low: number, high: number): Problem | null {
  return value !== null && Number.isInteger(value) && value >= low && value <= high ? null : { code: 'whole', low, high };
}

export function gitProblem(url: string): Problem | null {
  if (url === '') return { code: 'required' };
  if (!/^https?:\/\//i.test(url)) {
    const hasScheme = /^[a-z+]+:\/\//i.test(url);
    const isSsh = hasScheme ? /^(git\+)?ssh:|^git:/i.test(url) : url.includes('@');
    if (!isSsh) return { code: 'gitUrl' };
    const [, host, path] = SSH.exec(url) ?? [];
    return host && path ? { code: 'gitSshTry', text: `https://${host}/${path}` } : { code: 'gitSsh' };
  }
  const rest = url.replace(/^https?:\/\//i, '');
  const [authority = ''] = rest.split(/[/?#]/);
  if (authority.includes('@')) return { code: 'gitPassword' };
  const parsed = readUrl(url);
  if (parsed === null || parsed.search !== '' || parsed.hash !== '' || parsed.pathname.replaceAll('/', '') === '' || /\s/.test(url)) return { code: 'gitUrl' };
  return null;
}

function readUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function isInside(path: string): boolean {
  return !path.startsWith('/') && !path.split('/').includes('..') && !path.includes('\0');
}

export function logDirProblem(path: string): Problem | null {
  if (path === '') return { code: 'required' };
  if (!path.startsWith('/')) return { code: 'logDirAbsolute', text: `/output/${path.replace(/^\.\//, '')}` };
  return path.startsWith('/output/') && path !== '/output/' && !path.split('/').includes('..') ? null : { code: 'logDirOutput' };
}

function quantityProblem(text: string): Problem | null {
  const amount = parseQuantity(text.trim());
  return text.trim() === '' || (amount !== undefined && amount > 0) ? null : { code: 'quantity' };
}

export function parameterProblem(parameters: readonly Parameter[], index: number): Problem | null {
  const { name, value } = parameters[index]!;
  const isTwice = parameters.some((other, place) => place < index && other.name.trim() === name.trim());
  if (!/^[A-Za-z0-9_][\w.-]*$/.test(name.trim()) || isTwice) return { code: 'parameterName' };
  return NUMBER.test(value.trim()) ? null : { code: 'parameterValue' };
}

/** The flag to add to the command, if it does not name the log path yet; empty otherwise. */
export function missingFlag(form: TrainForm): string {
  if (!form.isMonitored || form.command.trim() === '' || logDirProblem(form.logDir.trim()) !== null) return '';
  return form.command.includes(form.logDir.trim()) ? '' : `--log_dir=${form.logDir.trim()}`;
}
