import { useText } from '../app/i18n.tsx';
import { Confirm } from '../parts/index.ts';
import { remove, suspend } from './actions.ts';
import type { AppName } from './embed.ts';

export type Asking = { action: 'pause' | 'delete'; app: AppName };

/** Says what pausing or deleting does, and asks. */
export function Question({ asking, onEnd }: { asking: Asking | null; onEnd: (isDone: boolean) => void }) {
  const t = useText();
  if (asking === null) return null;
  const { action, app } = asking;
  const isPause = action === 'pause';
  const isNotebook = app.kind === 'Notebook';
  const consequence = isPause
    ? isNotebook
      ? t.interactive.pauseNotebook
      : t.interactive.pauseTensorBoard
    : isNotebook
      ? t.interactive.deleteNotebook
      : t.interactive.deleteTensorBoard;
  const confirm = async () => {
    await (isPause ? suspend(app) : remove(app));
    onEnd(true);
  };
  return (
    <Confirm
      open
      title={isPause ? t.interactive.pauseTitle(app.name) : t.interactive.deleteTitle(app.name)}
      action={isPause ? t.interactive.pause : t.interactive.delete}
      isDangerous={!isPause}
      onConfirm={confirm}
      onCancel={() => onEnd(false)}
    >
      <p>{consequence}</p>
    </Confirm>
  );
}
