import { ArrowLeftOutlined, LineChartOutlined } from '@ant-design/icons';
import { Button } from 'antd';
import { Fragment, type ReactNode } from 'react';
import { ActionButtons } from '../../actions/ActionButtons.tsx';
import type { ActionName } from '../../actions/types.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, navigate, pathOf } from '../../app/router.tsx';
import { Ago, CopyButton, Duration, StatusTag } from '../../parts/index.ts';
import { WatchButton } from '../../watches/WatchButton.tsx';
import type { JobView } from './view.ts';

function isOver(phase: string): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

export function Heading({ view }: { view: JobView }) {
  const t = useText();
  const { facts } = view;
  const isFinal = isOver(view.phase);
  const parts: (ReactNode | false)[] = [
    view.kind,
    view.namespace,
    !isFinal && t.job.replicasOf(view.ready, view.desired),
    view.attempt > 0 && t.job.attempt(view.attempt),
    facts.started === null ? (
      <>
        {t.job.waits} <Duration from={facts.created} />
      </>
    ) : (
      <>
        {isFinal ? t.job.ran : t.job.runs} <Duration from={facts.started} to={facts.ended} />
      </>
    ),
    facts.ended !== null && <Ago time={facts.ended} />,
    view.askedBy !== '' && t.job.askedBy(view.askedBy),
  ];
  return (
    <div className="pl-job-heading">
      <Link to="/jobs" className="pl-back" aria-label={t.job.back} title={t.job.back}>
        <ArrowLeftOutlined aria-hidden />
      </Link>
      <div>
        <div className="pl-row">
          <h1>{view.name}</h1>
          <StatusTag phase={view.phase} />
          <CopyButton text={view.name} />
        </div>
        <p className="pl-dots">
          {parts
            .filter((part) => part !== false)
            .map((part, index) => (
              <Fragment key={index}>
                <span>{part}</span>
              </Fragment>
            ))}
        </p>
      </div>
    </div>
  );
}

export function HeaderActions({ view, onAction }: { view: JobView; onAction: (action: ActionName) => void }) {
  const { common } = useText();
  const board = view.tensorboard;
  return (
    <>
      {board && (
        <Button icon={<LineChartOutlined />} onClick={() => navigate(pathOf('tensorboards', view.namespace, board.name))}>
          {common.nav.tensorboards}
        </Button>
      )}
      {!isOver(view.phase) && <WatchButton job={view} />}
      <ActionButtons target={view} phase={view.phase} possible={view.actions} onAction={onAction} />
    </>
  );
}
