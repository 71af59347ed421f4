/** Search, filters and columns of the job list. */
import { SearchOutlined, SettingOutlined } from '@ant-design/icons';
import { Button, Checkbox, Input, Popover, Select, type InputRef } from 'antd';
import { memo, useCallback, useEffect, useRef, useState, type Ref } from 'react';
import { useText } from '../../app/i18n.tsx';
import { StatusIcon, toneOf } from '../../parts/index.ts';
import { shortKind } from './cells.tsx';
import { ALL_COLUMNS, FIXED_COLUMNS, type ColumnKey } from './columns.tsx';
import { Echoes } from './echoes.ts';
import { DEFAULT_SORT, isFiltered, NO_FILTER, sameFacet, type Facet, type Facets, type FilterList, type JobFilter } from './filter.ts';

interface Props {
  filter: JobFilter;
  facets: Facets;
  total: number;
  /** Stays the same from render to render: the selects are not drawn again at every key in the search. */
  onChange: (patch: Partial<JobFilter>) => void;
  searchRef: Ref<InputRef>;
  isNarrow: boolean;
}

export function FilterBar({ filter, facets, total, onChange, searchRef, isNarrow }: Props) {
  const { jobs } = useText();
  const search = useCallback((text: string) => onChange({ text }), [onChange]);
  return (
    <div className="pl-filters">
      <Search text={filter.text} onText={search} inputRef={searchRef} />
      <PhaseChips facets={facets.phases} chosen={filter.phases} total={total} onChange={onChange} />
      <div className="pl-filters-end">
        {(facets.kinds.length > 1 || filter.kinds.length > 0) && (
          <FacetSelect list="kinds" label={jobs.facet.kinds} facets={facets.kinds} chosen={filter.kinds} say={shortKind} onChange={onChange} />
        )}
        {(facets.labels.length > 0 || filter.labels.length > 0) && (
          <FacetSelect list="labels" label={jobs.facet.labels} facets={facets.labels} chosen={filter.labels} onChange={onChange} />
        )}
        {(facets.queues.length > 0 || filter.queues.length > 0) && (
          <FacetSelect list="queues" label={jobs.facet.queues} facets={facets.queues} chosen={filter.queues} onChange={onChange} />
        )}
        {isNarrow && <SortSelect sort={filter.sort} onSort={(sort) => onChange({ sort })} />}
        {isFiltered(filter) && (
          <Button type="link" size="small" onClick={() => onChange(NO_FILTER)}>
            {jobs.clear}
          </Button>
        )}
      </div>
    </div>
  );
}

// What is typed is shown at once; the URL and the list follow after that.
function Search({ text, onText, inputRef }: { text: string; onText: (text: string) => void; inputRef: Ref<InputRef> }) {
  const { jobs } = useText();
  const [typed, setTyped] = useState(text);
  const latest = useRef(text);
  const echoes = useRef(new Echoes());
  useEffect(() => {
    if (echoes.current.accept(text) || text === latest.current) return;
    latest.current = text;
    setTyped(text);
  }, [text]);
  useEffect(() => {
    if (typed === latest.current) return undefined;
    const timer = setTimeout(() => {
      latest.current = typed;
      echoes.current.send(typed);
      onText(typed);
    }, 0);
    return () => clearTimeout(timer);
  });
  return (
    <Input
      ref={inputRef}
      className="pl-search"
      allowClear
      prefix={<SearchOutlined aria-hidden />}
      suffix={typed === '' ? <kbd aria-hidden>/</kbd> : undefined}
      placeholder={jobs.search}
      aria-label={jobs.searchLabel}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
    />
  );
}

const PhaseChips = memo(function PhaseChips({ facets, chosen, total, onChange }: { facets: Facet[]; chosen: string[]; total: number; onChange: Props['onChange'] }) {
  const { common, jobs } = useText();
  const words: Record<string, string> = common.phases;
  const shown = [...facets, ...chosen.filter((phase) => !facets.some((facet) => facet.value === phase)).map((value) => ({ value, count: 0 }))];
  const toggle = (phase: string) => onChange({ phases: chosen.includes(phase) ? chosen.filter((other) => other !== phase) : [...chosen, phase] });
  if (total === 0) return null;
  return (
    <div className="pl-chips" role="group" aria-label={jobs.facet.phases}>
      {shown.map(({ value, count }) => (
        <button key={value} type="button" className="pl-chip" aria-pressed={chosen.includes(value)} onClick={() => toggle(value)} data-phase={value}>
          <StatusIcon tone={toneOf(value)} />
          {words[value] ?? value}
          <span className="pl-figures pl-chip-count">{count.toLocaleString()}</span>
        </button>
      ))}
    </div>
  );
}, sameFacet);

interface FacetProps {
  list: FilterList;
  label: string;
  facets: Facet[];
  chosen: string[];
  say?: (value: string) => string;
  onChange: Props['onChange'];
}

const FacetSelect = memo(function FacetSelect({ list, label, facets, chosen, say = (value) => value, onChange }: FacetProps) {
  return (
    <Select
      className="pl-facet"
      mode="multiple"
      allowClear
      maxTagCount={1}
      maxTagTextLength={14}
      value={chosen}
      placeholder={label}
      aria-label={label}
      popupMatchSelectWidth={false}
      onChange={(values: string[]) => onChange({ [list]: values })}
      options={facets.map(({ value, count }) => ({
        value,
        label: say(value),
        count,
      }))}
      optionRender={(option) => (
        <span className="pl-option">
          {option.label}
          <span className="pl-faint pl-figures">{Number(option.data.count).toLocaleString()}</span>
        </span>
      )}
    />
  );
}, sameFacet);

const SORTS = ['-created', 'phase', 'name', '-duration', '-restarts'];

function SortSelect({ sort, onSort }: { sort: string; onSort: (sort: string) => void }) {
  const { jobs } = useText();
  const words: Record<string, string> = jobs.column;
  return (
    <Select
      value={SORTS.includes(sort) ? sort : DEFAULT_SORT}
      onChange={onSort}
      aria-label={jobs.sort}
      popupMatchSelectWidth={false}
      options={SORTS.map((value) => ({ value, label: words[value.replace('-', '')] ?? value }))}
    />
  );
}

/** Which columns to show; `null` for the usual ones. */
export const ColumnChoice = memo(function ColumnChoice({ columns, onColumns }: { columns: ColumnKey[]; onColumns: (columns: ColumnKey[] | null) => void }) {
  const { jobs } = useText();
  const content = (
    <div className="pl-stack">
      <Checkbox.Group
        className="pl-column-choice"
        value={columns}
        onChange={(keys) => onColumns(keys)}
        options={ALL_COLUMNS.map((key) => ({ value: key, label: jobs.column[key], disabled: FIXED_COLUMNS.includes(key) }))}
      />
      <Button size="small" onClick={() => onColumns(null)}>
        {jobs.resetColumns}
      </Button>
    </div>
  );
  return (
    <Popover trigger="click" placement="bottomRight" content={content}>
      <Button icon={<SettingOutlined />}>{jobs.columns}</Button>
    </Popover>
  );
});
