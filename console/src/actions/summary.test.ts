import { describe, expect, it } from 'vitest';
import { summarize } from './summary.ts';
import { chunks, type BulkResult } from './types.ts';

function preview(part: Partial<BulkResult>): BulkResult {
  return { kind: 'MPIJob', namespace: 'default', name: 'x', action: 'delete', uid: 'u', possible: true, reason: null, consequences: [], ...part };
}

describe('the summary of an action on many jobs', () => {
  it('counts the replicas that stop and the jobs that are left alone', () => {
    const summary = summarize([
      preview({ consequences: [{ code: 'ReplicasStop', replicas: 2, graceSeconds: 30 }, { code: 'FilesStay', claims: ['data'] }] }),
      preview({ consequences: [{ code: 'ReplicasStop', replicas: 4, graceSeconds: 60 }, { code: 'TensorBoardGoes', name: 'x' }] }),
      preview({ consequences: [{ code: 'NothingRuns' }, { code: 'FilesStay', claims: ['data', 'model'] }] }),
      preview({ possible: false, reason: { code: 'Ended', message: 'has ended' } }),
      preview({ possible: false, reason: { code: 'Ended', message: 'has ended' } }),
      { kind: 'MPIJob', namespace: 'default', name: 'y', code: 404, error: { code: 404, reason: 'NotFound', message: 'gone' } },
    ]);

    expect(summary).toMatchObject({ possible: 3, running: 2, replicas: 6, graceSeconds: 60, tensorboards: 1, claims: ['data', 'model'] });
    expect(summary.refused).toEqual([
      { refusal: { code: 'Ended', message: 'has ended' }, count: 2 },
      { refusal: { code: 'NotFound', message: 'gone' }, count: 1 },
    ]);
  });
});

describe('chunks', () => {
  it('keep the order and lose nothing', () => {
    expect(chunks([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
    expect(chunks([], 2)).toEqual([]);
  });
});
