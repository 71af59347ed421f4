import { useObjects } from '../app/hooks.ts';
import { useRoute } from '../app/router.tsx';
import { AppFrame } from './AppFrame.tsx';
import { AppList } from './AppList.tsx';
import { listPath, type AppKind, type Service } from './service.ts';

/** The list of a kind, or one of it in a frame, as the URL says. */
export function AppPage({ kind }: { kind: AppKind }) {
  const { namespace, name } = useRoute().params;
  if (namespace === undefined || name === undefined) return <AppList kind={kind} />;
  return <OneApp kind={kind} namespace={namespace} name={name} key={`${namespace}/${name}`} />;
}

function OneApp({ kind, namespace, name }: { kind: AppKind; namespace: string; name: string }) {
  const { data, revision } = useObjects<Service>(listPath(kind, namespace));
  return <AppFrame app={{ kind, namespace, name }} service={data?.find((service) => service.metadata.name === name)} revision={revision} />;
}
