/** What the controls of a form share: the object that they edit, and how they write to its text. */
import { createContext, useContext, useEffect, useState } from 'react';
import { findingsAt, type Finding } from './checks.ts';
import type { Part, Path } from './document.ts';
import type { Change } from './pods.ts';
import type { KindSchema } from './schema.ts';

export interface FormState {
  part: Part;
  /** Findings about this object. */
  findings: readonly Finding[];
  namespace: string;
  schema: KindSchema | undefined;
  write(changes: readonly Change[]): void;
  fix(finding: Finding): void;
  /** Ask for a new claim, and put its name where it is needed. */
  newClaim(name: string, use: (name: string) => void): void;
}

const FormContext = createContext<FormState | null>(null);
export const FormProvider = FormContext.Provider;

export function useForm(): FormState {
  const form = useContext(FormContext);
  if (form === null) throw new Error('useForm needs a FormProvider around it');
  return form;
}

/** The value at a path, how to write it, and what is wrong with it. */
export function useValue(path: Path): { value: unknown; set: (value: unknown) => void; findings: Finding[] } {
  const form = useForm();
  return { value: form.part.get(path), set: (value) => form.write([[path, value]]), findings: findingsAt(form.findings, path) };
}

/** Names of objects, without reading the objects: secrets stay where they are. */
export function useNames(path: string | null): string[] {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    fetch(`/k8s${path}`, { headers: { Accept: accept }, signal: abort.signal, credentials: 'same-origin' })
      .then(async (response) => (response.ok ? ((await response.json()) as { items?: { metadata?: { name?: string } }[] }) : {}))
      .then((list) => setNames((list.items ?? []).flatMap((item) => item.metadata?.name ?? [])))
      .catch(() => undefined);
    return () => abort.abort();
  }, [path]);
  return names;
}
