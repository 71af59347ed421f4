import { Checkbox } from 'antd';
import { useMemo, useState } from 'react';
import { stringify } from 'yaml';
import { useText } from '../../app/i18n.tsx';
import { CopyButton, Empty, Section } from '../../parts/index.ts';
import { sayValue, valueRows } from './rows.ts';
import type { AppView } from './view.ts';

/** The values in effect: as written over the defaults of the template. */
export function Values({ view }: { view: AppView }) {
  const { apps } = useText();
  const words = apps.values;
  const [isShort, setShort] = useState(false);
  const rows = useMemo(() => valueRows(view.values), [view.values]);
  if (view.template === '') return <Empty title={words.none} hint={words.noneHint} />;
  const shown = isShort ? rows.filter((row) => row.isChanged) : rows;
  return (
    <div className="pl-stack">
      <div className="pl-row">
        <Checkbox checked={isShort} onChange={(event) => setShort(event.target.checked)}>
          {words.changed}
        </Checkbox>
        <span className="pl-push">
          <CopyButton text={() => stringify(view.values.written, { lineWidth: 0 })} type="default" size="middle">
            {words.copy}
          </CopyButton>
        </span>
      </div>
      <Section isFlush>
        <div className="pl-table-scroll">
          <table className="pl-table">
            <thead>
              <tr>
                <th>{words.path}</th>
                <th>{words.value}</th>
                <th>{words.default}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <tr key={row.path} data-value={row.path} data-changed={row.isChanged}>
                  <td>
                    <code>{row.path}</code>
                  </td>
                  <td className="pl-wrap">{sayValue(row.value) === '' ? <span className="pl-faint">{words.unset}</span> : row.isChanged ? <strong>{sayValue(row.value)}</strong> : sayValue(row.value)}</td>
                  <td className="pl-wrap pl-faint">{sayValue(row.initial) || words.unset}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Section>
    </div>
  );
}
