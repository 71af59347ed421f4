import { expect, it } from 'vitest';
import { filterEvents } from './events.ts';
import { isError } from './CauseBox.tsx';
import type { JobEvent } from './view.ts';

const event = (part: Partial<JobEvent>): JobEvent => ({ uid: 'u', time: '', count: 1, type: 'Normal', reason: 'Started', object: 'Pod/a', message: '', source: '', ...part });
const events = [event({ message: 'Started container' }), event({ type: 'Warning', reason: 'Restarting', object: 'MPIJob/a' }), event({ reason: 'Created', object: 'MPIJob/a' })];

it('filters events by type, object and text', () => {
  expect(filterEvents(events, 'all', '', 'MPIJob')).toHaveLength(3);
  expect(filterEvents(events, 'warnings', '', 'MPIJob').map((entry) => entry.reason)).toEqual(['Restarting']);
  expect(filterEvents(events, 'job', '', 'MPIJob')).toHaveLength(2);
  expect(filterEvents(events, 'all', ' CONTAINER ', 'MPIJob')).toHaveLength(1);
});

it('marks the line that names an error', () => {
  expect(["ModuleNotFoundError: No module named 'x'", 'torch.OutOfMemoryError: CUDA', 'ERROR: no', 'error: no'].every(isError)).toBe(true);
  expect(['epoch 1/12 loss 0.8', '  File "main.py", line 3', 'no Error here'].some(isError)).toBe(false);
});
