import { Modal } from 'antd';
import { useEffect, useState } from 'react';
import { useText } from '../app/i18n.tsx';
import { CopyButton } from '../parts/index.ts';
import type { LineDetail as Detail, LogClient } from './client.ts';
import type { ShownRow } from './messages.ts';

/** A whole line: its text as far as that can be shown, and the states that carriage returns have overwritten. */
export function LineDetail({ client, row, name, onClose }: { client: LogClient; row: ShownRow; name: string; onClose: () => void }) {
  const { logs } = useText();
  const [detail, setDetail] = useState<Detail | null>(null);
  useEffect(() => {
    let isCurrent = true;
    void client.detail(row.log, row.line).then((answer) => isCurrent && setDetail(answer));
    return () => {
      isCurrent = false;
    };
  }, [client, row]);
  const hasStates = (detail?.states.length ?? 0) > 1;
  return (
    <Modal open width={880} title={`${logs.detail} · ${name}`} footer={null} onCancel={onClose}>
      <div className="log-detail">
        <p className="pl-row">
          <code>{row.stamp}</code>
          {detail && <CopyButton text={detail.text}>{logs.copyLine}</CopyButton>}
        </p>
        {hasStates && <p>{logs.states}</p>}
        {detail && detail.earlier > 0 && <p className="pl-faint">{logs.statesCut(detail.earlier)}</p>}
        <div className="log-states" tabIndex={0}>
          {detail?.states.map((segments, index) => (
            <div key={index} className="log-state">
              {segments.map((segment, part) => (
                <span key={part} className={segment.style}>
                  {segment.text}
                </span>
              ))}
            </div>
          ))}
        </div>
        {row.hidden > 0 && <p className="pl-faint">{logs.textCut}</p>}
      </div>
    </Modal>
  );
}
