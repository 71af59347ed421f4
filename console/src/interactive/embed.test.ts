import { expect, test } from 'vitest';
import { appMessage, canFrame, MESSAGE_TYPE } from './embed.ts';

const origin = 'http://tb-x-1.paceline.localhost:7000';
const frame = {};
const event = (more: object) => ({ origin, source: frame as Window, data: { type: MESSAGE_TYPE, state: 'open' }, ...more });

test('a message counts only from the frame at the origin of its app', () => {
  expect(appMessage(event({}), origin, frame)).toBe('open');
  expect(appMessage(event({ origin: 'http://evil.example' }), origin, frame)).toBeNull();
  expect(appMessage(event({ source: {} }), origin, frame)).toBeNull();
});

test('other messages are nothing', () => {
  for (const data of [null, 'open', 7, {}, { type: MESSAGE_TYPE }, { type: MESSAGE_TYPE, state: 'x' }, { type: 'other', state: 'open' }])
    expect(appMessage(event({ data }), origin, frame)).toBeNull();
});

test('apps are framed only below the host of the page', () => {
  expect(canFrame(`${origin}/.paceline/open`, 'paceline.localhost:7000')).toBe(true);
  expect(canFrame(`${origin}/.paceline/open`, '127.0.0.1:7000')).toBe(false);
  expect(canFrame(`${origin}/.paceline/open`, 'localhost:7000')).toBe(false);
});
