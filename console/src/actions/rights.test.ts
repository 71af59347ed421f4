import { describe, expect, it } from 'vitest';
import { isAllowed, rightOf, type Rights } from './rights.ts';

const rights = (part: Partial<Rights>): Rights => ({ rules: [], isIncomplete: false, ...part });
const editor = rights({ rules: [{ verbs: ['patch', 'create'], apiGroups: ['batch.tensorstack.dev'], resources: ['mpijobs'] }] });

describe('rights', () => {
  it('belong to the resource of the kind', () => {
    expect(rightOf('pause', 'PyTorchTrainingJob')).toEqual({ verb: 'patch', group: 'batch.tensorstack.dev', resource: 'pytorchtrainingjobs' });
    expect(rightOf('uninstall', 'TrainingApp')).toEqual({ verb: 'delete', group: 'paceline.dev', resource: 'trainingapps' });
  });

  it('forbid what no rule allows', () => {
    expect(isAllowed(editor, rightOf('pause', 'MPIJob'))).toBe(true);
    expect(isAllowed(editor, rightOf('delete', 'MPIJob'))).toBe(false);
    expect(isAllowed(editor, rightOf('pause', 'GenericJob'))).toBe(false);
    expect(isAllowed(rights({ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }), rightOf('delete', 'MPIJob'))).toBe(true);
  });

  it('forbid nothing that is not known', () => {
    expect(isAllowed(undefined, rightOf('delete', 'MPIJob'))).toBe(true);
    expect(isAllowed(rights({ isIncomplete: true }), rightOf('delete', 'MPIJob'))).toBe(true);
  });
});
