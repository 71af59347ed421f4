import { App } from 'antd';
import { useText } from '../app/i18n.tsx';
import { addWatch, removeWatch, useWatches, type Watch } from './store.ts';

type Job = Omit<Watch, 'since'>;

/** Ask whether the browser may show notifications, if it was not asked before. Only ever called by a click. */
async function askPermission(): Promise<NotificationPermission | 'none'> {
  if (typeof Notification === 'undefined') return 'none';
  if (Notification.permission !== 'default') return Notification.permission;
  return Notification.requestPermission().catch(() => Notification.permission);
}

/** Which jobs are watched, and how to begin or end that. */
export function useWatch(): { isWatched: (uid: string) => boolean; toggle: (job: Job) => void } {
  const { actions } = useText();
  const { message } = App.useApp();
  const watches = useWatches();
  const isWatched = (uid: string) => watches.some((watch) => watch.uid === uid);
  const toggle = (job: Job) => {
    if (removeWatch(job.uid)) {
      void message.info(actions.watch.off(job.name));
      return;
    }
    addWatch(job);
    void askPermission().then((permission) => message.info(permission === 'granted' ? actions.watch.on(job.name) : actions.watch.onHere(job.name)));
  };
  return { isWatched, toggle };
}
