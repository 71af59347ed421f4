import { memo, type CSSProperties } from 'react';
import { ERROR, WARNING } from './levels.ts';
import type { ShownRow } from './messages.ts';

export interface RowLabel {
  text: string;
  colour: string;
  /** From the ninth replica on colours repeat, and the bar is dashed. */
  isDashed: boolean;
}

interface Props {
  row: ShownRow;
  label: RowLabel | null;
  stamp: string;
  isTarget: boolean;
  words: { earlier: (count: number) => string; more: (count: number) => string; copyLink: string };
  onDetail: (row: ShownRow) => void;
  onLink: (row: ShownRow) => void;
}

function Row({ row, label, stamp, isTarget, words, onDetail, onLink }: Props) {
  const level = row.level >= ERROR ? ' is-error' : row.level === WARNING ? ' is-warning' : '';
  return (
    <div className={`log-row${level}${isTarget ? ' is-target' : ''}`} data-row={row.row} data-stamp={row.stamp}>
      {stamp !== '' && (
        <button type="button" className="log-stamp" tabIndex={-1} title={`${row.stamp}\n${words.copyLink}`} onClick={() => onLink(row)}>
          {stamp}
        </button>
      )}
      {label && (
        <span className={`log-prefix${label.isDashed ? ' is-dashed' : ''}`} style={{ '--log-replica': label.colour } as CSSProperties}>
          {label.text}
        </span>
      )}
      <span className="log-text">
        {row.segments.map((segment, index) =>
          segment.style === '' ? (
            segment.text
          ) : (
            <span key={index} className={segment.style}>
              {segment.text}
            </span>
          ),
        )}
        {row.hidden > 0 && (
          <button type="button" className="log-mark" tabIndex={-1} onClick={() => onDetail(row)}>
            {words.more(row.hidden)}
          </button>
        )}
        {row.earlier > 0 && (
          <button type="button" className="log-mark" tabIndex={-1} onClick={() => onDetail(row)}>
            {words.earlier(row.earlier)}
          </button>
        )}
      </span>
    </div>
  );
}

function isSameRow(one: ShownRow, other: ShownRow): boolean {
  return (
    one.row === other.row &&
    one.log === other.log &&
    one.line === other.line &&
    one.hidden === other.hidden &&
    one.earlier === other.earlier &&
    one.segments.length === other.segments.length &&
    one.segments.every((segment, index) => segment.text === other.segments[index]!.text && segment.style === other.segments[index]!.style)
  );
}

/** One line of a log. Its text is only ever a text node. */
export const LogRow = memo(Row, (one, other) => {
  const isSame = (['label', 'stamp', 'isTarget', 'words', 'onDetail', 'onLink'] as const).every((name) => one[name] === other[name]);
  return isSame && isSameRow(one.row, other.row);
});
