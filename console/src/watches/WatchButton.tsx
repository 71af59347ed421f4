import { BellFilled, BellOutlined } from '@ant-design/icons';
import { Button, Tooltip } from 'antd';
import { useText } from '../app/i18n.tsx';
import type { Watch } from './store.ts';
import { useWatch } from './useWatch.ts';

/** Watches a job until it ends, or stops that. */
export function WatchButton({ job }: { job: Omit<Watch, 'since'> }) {
  const { actions } = useText();
  const { isWatched, toggle } = useWatch();
  const isOn = isWatched(job.uid);
  return (
    <Tooltip title={isOn ? actions.watch.stop : actions.watch.hint}>
      <Button icon={isOn ? <BellFilled /> : <BellOutlined />} aria-pressed={isOn} aria-label={actions.watch.start} onClick={() => toggle(job)} data-action="watch" />
    </Tooltip>
  );
}
