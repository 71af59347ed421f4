import { expect, test } from 'vitest';
import { words as en } from '../locales/en/index.ts';
import { words as zh } from '../locales/zh/index.ts';
import { bytesText, coresText, parseQuantity } from './Quantity.tsx';
import { agoText, durationText, milliseconds } from './time.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

test.each([
  [2 * SECOND, 'just now', '刚刚'],
  [30 * SECOND, '30 s ago', '30 秒前'],
  [119 * SECOND, '1 min ago', '1 分钟前'],
  [5 * HOUR, '5 h ago', '5 小时前'],
  [30 * HOUR, 'yesterday', '昨天'],
  [72 * HOUR, '3 days ago', '3 天前'],
])('an age of %i ms is "%s" and "%s"', (age, english, chinese) => {
  expect(agoText(0, age, en.common)).toBe(english);
  expect(agoText(0, age, zh.common)).toBe(chinese);
});

test('durations have two units at most', () => {
  expect(durationText(372 * SECOND, en.common)).toBe('6 min 12 s');
  expect(durationText(2 * HOUR, en.common)).toBe('2 h');
  expect(durationText(49 * HOUR, zh.common)).toBe('2 天 1 小时');
});

test('times are RFC 3339 or seconds', () => {
  expect(milliseconds('2030-01-01T00:00:00Z')).toBe(1893456000000);
  expect(milliseconds(1893456000)).toBe(1893456000000);
  expect(milliseconds('')).toBeUndefined();
  expect(milliseconds('soon')).toBeUndefined();
});

test('quantities are read and written as Kubernetes does it', () => {
  expect(parseQuantity('500m')).toBe(0.5);
  expect(parseQuantity('4Gi')).toBe(4 * 2 ** 30);
  expect(parseQuantity('1e3')).toBe(1000);
  expect(parseQuantity('lots')).toBeUndefined();
  expect(bytesText(4.5 * 2 ** 30)).toBe('4.5 Gi');
  expect(bytesText(512)).toBe('512 B');
  expect(coresText(0.25)).toBe('0.25');
  expect(coresText(0.005)).toBe('5m');
});

/** Texts of the Chinese page that have no Chinese in them, but names that stay. */
function latin(words: unknown, path: string): string[] {
  if (typeof words === 'string') return /[\u4e00-\u9fff]/.test(words) || !/[A-Za-z]{2}/.test(words) ? [] : [path];
  if (typeof words !== 'object' || words === null) return [];
  return Object.entries(words).flatMap(([name, value]) => latin(value, path === '' ? name : `${path}.${name}`));
}

test('the shell of the Chinese page speaks Chinese, but for names', () => {
  const { common, settings } = zh;
  expect(latin({ common, settings }, '')).toEqual([
    'common.product',
    'common.nav.notebooks',
    'common.nav.tensorboards',
    'common.bar.switchLanguage',
    'settings.login.tokenPlaceholder',
    'settings.about.version',
    'settings.about.kubernetes',
    'settings.about.remote',
    'settings.about.licenceText',
  ]);
});
