import { useRoute } from '../../app/router.tsx';
import { HistoryDetail } from './Detail.tsx';
import { HistoryList } from './List.tsx';

export default function HistoryPage() {
  const { namespace, record, tab } = useRoute().params;
  return namespace && record ? <HistoryDetail key={record} namespace={namespace} name={record} tab={tab} /> : <HistoryList />;
}
