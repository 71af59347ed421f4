import { describe, expect, it } from 'vitest';
import { words as en } from '../locales/en/index.ts';
import { words as zh } from '../locales/zh/index.ts';
import { isKept, sayConsequence, sayRefusal } from './words.ts';

describe('consequences in words', () => {
  const consequences = Object.keys(en.actions.consequences).map((code) => ({ code, replicas: 2, graceSeconds: 30, name: 'x', claims: ['a', 'b'], job: 'x', attempt: 2 }));

  it('exist in both languages for every code', () => {
    for (const consequence of consequences)
      for (const words of [en, zh]) {
        const sentence = sayConsequence(consequence, words.actions);
        expect(sentence, consequence.code).not.toBe(consequence.code);
        expect(sentence).not.toMatch(/undefined|NaN/);
      }
  });

  it('name what stays', () => {
    expect(sayConsequence({ code: 'FilesStay', claims: ['a', 'b'] }, en.actions)).toBe('Files on a, b stay.');
    expect(isKept({ code: 'FilesStay' })).toBe(true);
    expect(isKept({ code: 'ReplicasStop' })).toBe(false);
  });

  it('show an unknown code as it is', () => {
    expect(sayConsequence({ code: 'SomethingNew' }, en.actions)).toBe('SomethingNew');
    expect(sayRefusal({ code: 'SomethingNew', message: 'is new' }, en)).toBe('is new');
  });

  it('say refusals with the phase in the language of the person', () => {
    expect(sayRefusal({ code: 'Ended', message: 'x', phase: 'Failed' }, zh)).toContain(zh.common.phases.Failed);
  });
});
