import { useQuery } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { ChangePage } from './ChangePage.tsx';
import { TemplatePage } from './TemplatePage.tsx';
import { TrainCard } from './TrainCard.tsx';
import { TEMPLATE } from './values.ts';

/** The card of the model training; with `?template=` the form of another template, with `?app=` that of an application. */
export default function TrainPage() {
  const [query] = useQuery();
  const [namespace] = useNamespace();
  const [template, app] = [query.get('template') ?? TEMPLATE, query.get('app')];
  if (app !== null) return <ChangePage key={app} app={app} />;
  if (template !== TEMPLATE) return <TemplatePage key={template} name={template} namespace={namespace || 'default'} />;
  return <TrainCard namespace={namespace || 'default'} />;
}
