/** Form and editor side by side with a bar that moves; on narrow screens one of them at a time. */
import { Segmented } from 'antd';
import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { useChoice } from '../../app/preferences.ts';

const NARROW = '(max-width: 900px)';
const LEAST = 25;
const MOST = 75;

export function useIsNarrow(): boolean {
  const [query] = useState(() => window.matchMedia(NARROW));
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const follow = () => setNarrow(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, [query]);
  return isNarrow;
}

export type Side = 'form' | 'yaml';

interface Props {
  form: ReactNode;
  editor: ReactNode;
  side: Side;
  onSide: (side: Side) => void;
}

export function Split({ form, editor, side, onSide }: Props) {
  const { create } = useText();
  const isNarrow = useIsNarrow();
  const [width, setWidth] = useChoice('create.split', 50);
  const box = useRef<HTMLDivElement>(null);
  const place = (percent: number) => setWidth(Math.round(Math.min(Math.max(percent, LEAST), MOST)));
  const drag = (event: PointerEvent) => {
    if (event.buttons !== 1 || !box.current) return;
    const { left, width: all } = box.current.getBoundingClientRect();
    place(((event.clientX - left) / all) * 100);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    place(width + step);
  };
  if (isNarrow) {
    return (
      <div className="pc-split pc-narrow">
        <Segmented<Side>
          block
          value={side}
          onChange={onSide}
          options={[
            { value: 'form', label: create.form },
            { value: 'yaml', label: create.yaml },
          ]}
        />
        <div className="pc-pane" hidden={side !== 'form'}>
          {form}
        </div>
        <div className="pc-pane" hidden={side !== 'yaml'}>
          {editor}
        </div>
      </div>
    );
  }
  return (
    <div ref={box} className="pc-split" style={{ gridTemplateColumns: `minmax(0, ${width}fr) 9px minmax(0, ${100 - width}fr)` }}>
      <div className="pc-pane">{form}</div>
      <div
        className="pc-bar"
        role="separator"
        aria-orientation="vertical"
        aria-label={create.divider}
        aria-valuenow={width}
        aria-valuemin={LEAST}
        aria-valuemax={MOST}
        tabIndex={0}
        onKeyDown={press}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={drag}
      />
      <div className="pc-pane">{editor}</div>
    </div>
  );
}
