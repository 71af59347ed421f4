import { stringify } from 'yaml';
import { YamlView } from '../job/YamlView.tsx';
import type { KubeObject } from './submit.ts';

export function YamlPreview({ objects }: { objects: KubeObject[] }) {
  return <YamlView text={objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')} />;
}
