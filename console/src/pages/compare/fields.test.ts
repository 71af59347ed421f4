import { describe, expect, it } from 'vitest';
import { compareUrl, readJobs, shownNames } from './choice.ts';
import { compareFields, csvText } from './fields.ts';

describe('comparing', () => {
  it('puts the fields of jobs side by side, entries of lists by their names', () => {
    const rows = compareFields([
      { lr: 0.1, env: [{ name: 'A', value: 'x' }], args: ['a', 'b'] },
      { lr: 0.2, env: [{ name: 'B', value: 'y' }, { name: 'A', value: 'x' }], args: ['a', 'b'] },
    ]);
    expect(rows.filter((row) => row.differs).map((row) => [row.path, ...row.values])).toEqual([
      ['lr', '0.1', '0.2'],
      ['env[B].name', null, 'B'],
      ['env[B].value', null, 'y'],
    ]);
    expect(rows.find((row) => row.path === 'args')?.values).toEqual(['["a","b"]', '["a","b"]']);
  });

  it('keeps the jobs in the URL', () => {
    const jobs = [{ namespace: 'a', kind: 'MPIJob', name: 'x' }, { namespace: 'b', kind: 'MPIJob', name: 'x' }];
    const query = new URL(compareUrl(jobs), 'http://x').searchParams.get('jobs');
    expect(readJobs(query)).toEqual(jobs);
    expect(readJobs('a/b,c,,a/MPIJob/x,a/MPIJob/x')).toEqual([jobs[0]]);
    expect(shownNames(jobs)).toEqual(['a/x', 'b/x']);
  });

  it('writes tables that no spreadsheet runs', () => {
    expect(csvText([['a', '=cmd()', null, '-1', 'x"y,z']])).toBe('a,\'=cmd(),,-1,"x""y,z"\n');
  });
});
