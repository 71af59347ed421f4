import { expect, test } from 'vitest';
import { chartsOf, gathered, type UsageAnswer, type UsageItem } from './series.ts';

function item(pod: string, container: string, times: number[], cpu: (number | null)[], limit?: number): UsageItem {
  const limits: Record<string, number> = limit === undefined ? {} : { cpu: limit };
  return { pod, uid: pod, container, times, values: { cpu: { min: cpu, mean: cpu, max: cpu } }, requests: {}, limits };
}

const byPod = (entry: UsageItem) => ({ label: entry.pod ?? '', colour: 0 });

test('containers of one replica are added up, and gaps stay gaps', () => {
  const charts = chartsOf([item('a', 'main', [5, 10], [1, null]), item('a', 'side', [5], [0.5]), item('b', 'main', [15], [3])], byPod);
  expect(charts).toHaveLength(1);
  expect(charts[0]?.times).toEqual([5, 10, 15]);
  expect(charts[0]?.lines.map((line) => [line.label, line.values])).toEqual([
    ['a', [1.5, null, null]],
    ['b', [null, null, 3]],
  ]);
});

test('equal limits are one mark with all its replicas', () => {
  const charts = chartsOf([item('a', 'main', [5], [1], 2), item('b', 'main', [5], [1], 2), item('c', 'main', [5], [1], 4)], byPod);
  expect(charts[0]?.marks).toEqual([
    { kind: 'limit', value: 2, labels: ['a', 'b'] },
    { kind: 'limit', value: 4, labels: ['c'] },
  ]);
});

test('a long pause is a gap in the line', () => {
  const [chart] = chartsOf([item('a', 'main', [5, 10, 100], [1, 1, 2])], byPod, 5);
  expect(chart?.times).toEqual([5, 10, 15, 100]);
  expect(chart?.lines[0]?.values).toEqual([1, 1, null, 2]);
});

test('what belongs to nobody is left out', () => {
  expect(chartsOf([item('a', 'main', [5], [1])], () => undefined)).toEqual([]);
});

test('points of the metrics API are gathered while somebody looks', () => {
  const answer = (time: number, source: UsageAnswer['source']): UsageAnswer => ({ source, from: time, to: time, step: 15, items: [item('a', 'main', [time], [time])] });
  const both = gathered(answer(10, 'metrics'), answer(25, 'metrics'));
  expect(both.items[0]?.times).toEqual([10, 25]);
  expect(both.from).toBe(10);
  expect(gathered(answer(10, 'node'), answer(25, 'node')).items[0]?.times).toEqual([25]);
});
