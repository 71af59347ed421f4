import type { ActionName } from '../../actions/types.ts';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import type { Row } from '../../app/rows.ts';
import { Ago, Duration, StatusTag } from '../../parts/index.ts';
import { jobUrl, ProgressCell, ReasonLine, ReplicasCell, shortKind } from './cells.tsx';
import { RowBox, RowMenu } from './columns.tsx';
import { readProgress } from './progress.ts';

interface Props {
  row: Row;
  isSelected: boolean;
  onSelect: (row: Row) => void;
  onAction: (action: ActionName, row: Row) => void;
}

/** A job on a phone. */
export function JobCard({ row, isSelected, onSelect, onAction }: Props) {
  const t = useText();
  return (
    <article className="pl-job-card">
      <div className="pl-job-card-top">
        <RowBox row={row} isSelected={isSelected} onSelect={onSelect} label={t.jobs.select(row.name)} />
        <Link to={jobUrl(row)} className="pl-job-name">
          {row.name}
        </Link>
        <StatusTag phase={row.phase} />
        <RowMenu row={row} words={t.actions} onAction={onAction} />
      </div>
      <ReasonLine row={row} />
      {readProgress(row.progress) && <ProgressCell progress={row.progress} phase={row.phase} />}
      <div className="pl-job-card-facts">
        <span>{shortKind(row.kind)}</span>
        <span>
          {t.jobs.column.replicas} <ReplicasCell row={row} />
        </span>
        {row.started !== '' && <Duration from={row.started} to={row.ended} />}
        <Ago time={row.created} />
      </div>
    </article>
  );
}
