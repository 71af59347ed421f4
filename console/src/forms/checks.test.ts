import { expect, test } from 'vitest';
import { sayMissing, type Finding } from './checks.ts';

const span = { line: 4, column: 9, endLine: 4, endColumn: 11 };
const finding = (path: string, severity: Finding['severity'] = 'error'): Finding => ({ severity, object: 0, path, reason: 'Invalid', message: 'name is empty; it must consist of …', span, fix: null });

test('what lacks in a field is said in words of the page, and nothing else is', () => {
  const path = ['metadata', 'name'];
  expect(sayMissing([finding('metadata.name')], path, '请填写此项。')[0]?.message).toBe('请填写此项。');
  const others = [finding('metadata.name', 'warning'), finding('metadata.name.more')];
  expect(sayMissing(others, path, '请填写此项。')).toEqual(others);
});
