/** Words in the chosen language: `const t = useText()`, then `t.jobs.title`, or `t.jobs.selected(3)` where a number goes in. */
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import type { Words } from '../locales/en/index.ts';
import { usePreferences, type Language } from './preferences.ts';
import { fetchPart } from './retry.ts';

export type { Words };

const loaders: Record<Language, () => Promise<Words>> = {
  en: () => import('../locales/en/index.ts').then((module) => module.words),
  zh: () => import('../locales/zh/index.ts').then((module) => module.words),
};

export function loadWords(language: Language): Promise<Words> {
  return fetchPart(loaders[language]);
}

const TextContext = createContext<Words | null>(null);

export function useText(): Words {
  const words = useContext(TextContext);
  if (words === null) throw new Error('useText needs a TextProvider around it');
  return words;
}

/** Gives the words of the chosen language; shows nothing until the first ones are there, and the old ones while others load. */
export function TextProvider({ children, words: given }: { children: ReactNode; words?: Words }) {
  const [{ language }] = usePreferences();
  const [words, setWords] = useState<Words | null>(given ?? null);
  useEffect(() => {
    if (given) return;
    let isCurrent = true;
    loadWords(language).then(
      (loaded) => isCurrent && setWords(loaded),
      // Without words there is nothing to say why; the old ones stay.
      (error: unknown) => console.error(error),
    );
    return () => {
      isCurrent = false;
    };
  }, [language, given]);
  useEffect(() => {
    if (words !== null) document.documentElement.lang = words.lang;
  }, [words]);
  return words === null ? null : <TextContext value={words}>{children}</TextContext>;
}
