/** Places in the scheduling queue of the embedded cluster; other clusters have none, and nothing is said about them. */
import { useView } from '../../app/hooks.ts';
import type { Row } from '../../app/rows.ts';

/** All that wait for room, in their order: console/subscriptions/views.py. */
export interface QueueView {
  length: number;
  uids: string[];
}

/** The place of a job, counted from 1. */
export interface QueuePlace {
  position: number;
  length: number;
}

const QUEUED = ['Pending', 'Resuming', 'Running'];

/** Whether a scheduler has no node for a pod of the job, as presentation/queue_position.py decides. */
export function waitsForRoom({ phase, reason }: Pick<Row, 'phase' | 'reason'>): boolean {
  return QUEUED.includes(phase) && /nodes are available: |waits behind others for /.test(reason);
}

export function placeIn(view: QueueView | undefined, uid: string): QueuePlace | undefined {
  const index = view?.uids.indexOf(uid) ?? -1;
  return view === undefined || index < 0 ? undefined : { position: index + 1, length: view.length };
}

/** The place of a row's job. All rows share one subscription, and there is none while nothing waits. */
export function useQueuePlace(row: Row): QueuePlace | undefined {
  const isWaiting = waitsForRoom(row);
  const { data } = useView<QueueView>('queue', isWaiting ? {} : null);
  return isWaiting ? placeIn(data, row.uid) : undefined;
}
