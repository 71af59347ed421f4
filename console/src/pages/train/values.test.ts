import { describe, expect, it } from 'vitest';
import { betterName, EMPTY, gitProblem, logDirProblem, missingFlag, nameProblem, parameterProblem, problemsOf, valuesOf, type TrainForm } from './values.ts';

const GOOD: TrainForm = { ...EMPTY, name: 'tf-train', git: 'https://example.org/team/code.git', command: 'python3 train.py' };

describe('the form of the model training', () => {
  it('is good with a name, an address and a command', () => {
    expect(problemsOf(GOOD, [])).toEqual({});
    expect(Object.keys(problemsOf(EMPTY, []))).toEqual(['name', 'git', 'command']);
  });

  it('checks hidden fields only where they are shown', () => {
    const hidden: TrainForm = { ...GOOD, ps: null, workers: null, logDir: 'x', user: '', image: 'No Image', framework: 'python' };
    expect(problemsOf(hidden, [])).toEqual({});
    const shown: TrainForm = { ...hidden, distributed: true, isMonitored: true, isPrivate: true, framework: 'image' };
    expect(Object.keys(problemsOf(shown, []))).toEqual(['image', 'ps', 'workers', 'user', 'password', 'logDir']);
  });

  it('has no parameter servers with PyTorch', () => {
    const pytorch: TrainForm = { ...GOOD, framework: 'pytorch', distributed: true, ps: null, workers: 3 };
    expect(problemsOf(pytorch, [])).toEqual({});
    expect(valuesOf(pytorch, '')).toMatchObject({ framework: 'pytorch', ps: 0, workers: 3 });
  });

  it('means the values of the template', () => {
    const form: TrainForm = {
      ...GOOD,
      distributed: true,
      ps: 1,
      workers: 2,
      gpus: 1,
      data: { sort: 'claim', name: 'tfoss' },
      isMonitored: true,
      parameters: [{ name: ' lr ', value: '0.10' }],
    };
    expect(valuesOf(form, '')).toEqual({
      git: { url: 'https://example.org/team/code.git' },
      command: 'python3 train.py',
      framework: 'tensorflow',
      distributed: true,
      ps: 1,
      workers: 2,
      gpus: 1,
      cpu: '500m',
      memory: '1Gi',
      data: { claim: 'tfoss' },
      logDir: '/output/training_logs',
      hyperparameters: { lr: '0.10' },
    });
  });

  it('never puts a password into the values', () => {
    const form: TrainForm = { ...GOOD, isPrivate: true, user: 'me', password: 'correct-horse' };
    expect(JSON.stringify(valuesOf(form, 'tf-train-git'))).not.toContain('correct-horse');
    expect(valuesOf(form, 'tf-train-git').git).toEqual({ url: GOOD.git, secret: 'tf-train-git' });
    expect(valuesOf({ ...form, isPrivate: false }, 'tf-train-git').git).toEqual({ url: GOOD.git });
  });

  it('names a bucket by its Secret', () => {
    const data = { sort: 'bucket', secret: 'oss', url: 'oss://team/data' } as const;
    expect(valuesOf({ ...GOOD, data }, '').data).toEqual({ secret: 'oss', bucket: 'oss://team/data' });
  });
});

describe('names', () => {
  it.each([
    ['', 'required'],
    ['-a', 'nameCharsTry'],
    ['TF_Train', 'nameCharsTry'],
    ['训练', 'nameChars'],
    ['a.b', 'nameCharsTry'],
    ['x'.repeat(65), 'nameLong'],
    ['mnist', 'nameTaken'],
  ])('%s is refused: %s', (name, code) => expect(nameProblem(name, ['mnist'])?.code).toBe(code));
  it('are made better', () => {
    expect(betterName('TF_Train ')).toBe('tf-train');
    expect(nameProblem(betterName('--My App!'), [])).toBeNull();
  });
});

describe('git addresses', () => {
  it.each(['https://example.org/a/b.git', 'http://127.0.0.1:8080/code.git'])('%s is taken', (url) => expect(gitProblem(url)).toBeNull());
  it.each([
    ['git@example.org:team/code.git', 'gitSshTry'],
    ['ssh://git@example.org/team/code.git', 'gitSshTry'],
    ['https://me:secret@example.org/code.git', 'gitPassword'],
    ['https://example.org', 'gitUrl'],
    ['https://example.org/a?x=1', 'gitUrl'],
    ['ftp://example.org/a', 'gitUrl'],
    ['code', 'gitUrl'],
    ['javascript:alert(1)', 'gitUrl'],
  ])('%s is refused: %s', (url, code) => expect(gitProblem(url)?.code).toBe(code));
  it('over ssh have a twin over https', () =>
    expect(gitProblem('git@example.org:team/code.git')).toEqual({ code: 'gitSshTry', text: 'https://example.org/team/code.git' }));
});

describe('log paths', () => {
  it('lie below /output', () => {
    expect(logDirProblem('/output/training_logs')).toBeNull();
    expect(logDirProblem('logs')).toEqual({ code: 'logDirAbsolute', text: '/output/logs' });
    for (const path of ['/tmp/x', '/output', '/output/', '/output/../etc']) expect(logDirProblem(path)?.code).toBe('logDirOutput');
  });
  it('are offered to a command that does not name them', () => {
    const form: TrainForm = { ...GOOD, isMonitored: true };
    expect(missingFlag(form)).toBe('--log_dir=/output/training_logs');
    expect(missingFlag({ ...form, command: 'python3 t.py --logs /output/training_logs' })).toBe('');
    expect(missingFlag({ ...form, isMonitored: false })).toBe('');
  });
});

describe('hyperparameters', () => {
  it('have a name once, and a number', () => {
    const parameters = [
      { name: 'lr', value: '1e-3' },
      { name: 'lr', value: '1' },
      { name: 'batch size', value: '1' },
      { name: 'n', value: 'many' },
    ];
    expect(parameters.map((_, index) => parameterProblem(parameters, index)?.code)).toEqual([undefined, 'parameterName', 'parameterName', 'parameterValue']);
  });
});
