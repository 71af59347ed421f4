import { useRoute } from '../../app/router.tsx';
import { Browser } from './Browser.tsx';
import { VolumeList } from './VolumeList.tsx';

/** The volumes of a project, or the files of one. */
export default function VolumesPage() {
  const { namespace, claim } = useRoute().params;
  return namespace !== undefined && claim !== undefined ? <Browser key={`${namespace}/${claim}`} namespace={namespace} claim={claim} /> : <VolumeList />;
}
