/** What a table says below the rows that have a reason: one sentence over the whole width, not a narrow column of words. */
import type { TableProps } from 'antd';

export function explained<Row>(rows: readonly Row[], keyOf: (row: Row) => string, whyOf: (row: Row) => string): NonNullable<TableProps<Row>['expandable']> {
  return {
    expandedRowKeys: rows.filter((row) => whyOf(row) !== '').map(keyOf),
    showExpandColumn: false,
    expandedRowClassName: () => 'pl-app-why-row',
    expandedRowRender: (row) => <Why text={whyOf(row)} />,
  };
}

/** The same on a card. */
export function Why({ text }: { text: string }) {
  return text === '' ? null : (
    <p className="pl-app-why" lang="en">
      {text}
    </p>
  );
}
