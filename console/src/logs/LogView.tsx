import { useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type KeyboardEvent, type Ref } from 'react';
import { nextNumber, type Found, type LogClient } from './client.ts';
import { LogRow, type RowLabel } from './LogRow.tsx';
import type { Frame, ShownRow, Target, Viewport, ViewSpec } from './messages.ts';
import { move, placeOf, scrollHeight, scrollTopOf, TOP, type Extent, type Place } from './scroll.ts';

/** Rows drawn above and below the visible ones, so that scrolling shows no gap while the worker answers. */
const OVERSCAN = 24;
const SETTLE_MS = 150;

export interface LogViewHandle {
  seek(target: Target): Promise<Found>;
  /** Show a line, a third below the top, and mark it. */
  show(found: Found): void;
  nextHit(direction: 1 | -1): Promise<Found>;
  toTop(): void;
  focus(): void;
}

interface Props {
  client: LogClient;
  spec: ViewSpec;
  labels: Map<number, RowLabel> | null;
  formatStamp: ((stamp: string) => string) | null;
  isWrapped: boolean;
  fontSize: number;
  isFollowing: boolean;
  onFollow: (isFollowing: boolean) => void;
  onFrame: (frame: Frame) => void;
  onDetail: (row: ShownRow) => void;
  onLink: (row: ShownRow) => void;
  words: { label: string; earlier: (count: number) => string; more: (count: number) => string; copyLink: string };
  handle: Ref<LogViewHandle>;
}

/** The visible lines of a view, drawn one by one; everything else stays in the worker. */
export function LogView(props: Props) {
  const { client, spec, labels, formatStamp, isWrapped, fontSize, isFollowing, onDetail, onLink, words } = props;
  const [view] = useState(nextNumber);
  const [frame, setFrame] = useState<Frame | null>(null);
  const [height, setHeight] = useState(0);
  const [target, setTarget] = useState<Found | null>(null);
  const targetRow = useRef(-1);
  const scroller = useRef<HTMLDivElement>(null);
  const block = useRef<HTMLDivElement>(null);
  const place = useRef<Place>(TOP);
  const asked = useRef<Viewport>({ request: 0, from: 0, count: 0, anchor: 0, isFollowing: true });
  // Known at once, where the property comes with the next drawing.
  const following = useRef(isFollowing);
  const shownTop = useRef(0);
  const isDragging = useRef(false);
  const latest = useRef(props);
  latest.current = props;

  const rowHeight = Math.round(fontSize * 1.6);
  const total = frame?.total ?? 0;
  const extent: Extent = { total, height, rowHeight };
  const extentNow = useRef(extent);
  extentNow.current = extent;

  /** Ask the worker for the rows around the place. */
  const ask = useCallback(
    () => {
      const { height, rowHeight } = extentNow.current;
      const visible = Math.ceil(height / rowHeight) + 1;
      const { row } = place.current;
      const from = Math.max(0, row - OVERSCAN);
      const count = visible + 2 * OVERSCAN;
      const marked = targetRow.current;
      const anchor = marked >= row && marked < row + visible ? marked : row;
      const now = asked.current;
      if (now.from === from && now.count === count && now.anchor === anchor && now.isFollowing === following.current) return;
      asked.current = { request: now.request + 1, from, count, anchor, isFollowing: following.current };
      client.setViewport(view, asked.current);
    },
    [client, view],
  );

  useEffect(() => client.setView(view, spec), [client, view, spec]);
  useEffect(
    () =>
      client.onFrame(view, (next) => {
        // An answer to something older: its rows may be of use, its place is not. Another answer is on its way.
        if (next.isFollowing !== asked.current.isFollowing) return client.drawn(view);
        if (next.request === asked.current.request) {
          const moved = next.isFollowing ? 0 : next.anchor - asked.current.anchor;
          place.current = { ...place.current, row: Math.max(0, place.current.row + moved) };
          targetRow.current += moved;
          asked.current = { ...asked.current, from: next.from, anchor: next.anchor };
        }
        setFrame(next);
        latest.current.onFrame(next);
      }),
    [client, view],
  );
  useEffect(() => {
    if (!frame) return undefined;
    const request = requestAnimationFrame(() => client.drawn(view));
    return () => cancelAnimationFrame(request);
  }, [client, view, frame]);
  useLayoutEffect(() => {
    following.current = isFollowing;
    ask();
  }, [ask, isFollowing, height, rowHeight]);
  const follow = useCallback((isOn: boolean) => {
    following.current = isOn;
    latest.current.onFollow(isOn);
  }, []);
  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);

  const rowElement = useCallback((row: number) => block.current?.querySelector<HTMLElement>(`[data-row="${row}"]`) ?? null, []);
  const heightOf = useCallback((row: number) => rowElement(row)?.offsetHeight, [rowElement]);

  /** Put the drawn rows where the place says, and the scroll bar beside them. */
  const arrange = useCallback(() => {
    const [element, rows] = [scroller.current, block.current];
    if (!element || !rows) return;
    const { height, total } = extentNow.current;
    const last = rowElement(total - 1);
    const end = last ? last.offsetTop + last.offsetHeight : Infinity;
    const first = rowElement(place.current.row);
    let top = first ? first.offsetTop + place.current.offset : 0;
    if (following.current || top > end - height) {
      top = last ? Math.max(rowElement(0) ? 0 : -Infinity, end - height) : top;
      if (last) place.current = placeAt(rows, top) ?? place.current;
    }
    rows.style.transform = `translateY(${-Math.round(top)}px)`;
  }, [rowElement]);

  const syncBar = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const scrollTop = following.current ? element.scrollHeight - element.clientHeight : scrollTopOf(place.current, extentNow.current);
    element.scrollTop = scrollTop;
    shownTop.current = element.scrollTop;
  }, []);

  useLayoutEffect(() => {
    arrange();
    if (isFollowing || !isDragging.current) syncBar();
  }, [frame, isWrapped, isFollowing, height, rowHeight, arrange, syncBar]);

  /** Go to a place: follow the end when it is reached, and leave it otherwise. */
  const go = useCallback(
    (next: Place, isDown: boolean) => {
      place.current = next;
      const { total, height } = extentNow.current;
      const last = rowElement(total - 1);
      const here = rowElement(next.row);
      const isAtEnd = last && here ? here.offsetTop + next.offset + height >= last.offsetTop + last.offsetHeight - 1 : false;
      const isFollowing = isAtEnd && (isDown || following.current);
      if (isFollowing !== following.current) follow(isFollowing);
      if (!isFollowing) arrange();
      ask();
    },
    [arrange, ask, follow, rowElement],
  );

  const scrollBy = useCallback(
    (pixels: number) => {
      const { total } = extentNow.current;
      if (total === 0) return;
      if (following.current && pixels >= 0) return;
      go(move(place.current, pixels, extentNow.current, heightOf), pixels > 0);
      syncBar();
    },
    [go, heightOf, syncBar],
  );

  // The wheel moves by pixels through the drawn rows, also where one pixel of the scroll bar is several lines.
  useEffect(() => {
    const element = scroller.current!;
    const wheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.shiftKey || event.deltaY === 0 || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? extentNow.current.rowHeight : event.deltaMode === 2 ? extentNow.current.height : 1;
      scrollBy(event.deltaY * unit);
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, [scrollBy]);

  // What is left is the scroll bar itself, fingers and the browser.
  const settle = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const onScroll = () => {
    const element = scroller.current!;
    const delta = element.scrollTop - shownTop.current;
    shownTop.current = element.scrollTop;
    if (Math.abs(delta) < 1) return;
    const isJump = isDragging.current || Math.abs(delta) > 3 * height;
    go(isJump ? placeOf(element.scrollTop, extentNow.current) : move(place.current, delta, extentNow.current, heightOf), delta > 0);
    clearTimeout(settle.current);
    settle.current = setTimeout(() => !isDragging.current && syncBar(), SETTLE_MS);
  };
  useEffect(() => {
    const release = () => {
      isDragging.current = false;
    };
    window.addEventListener('pointerup', release);
    return () => {
      window.removeEventListener('pointerup', release);
      clearTimeout(settle.current);
    };
  }, []);

  const show = useCallback(
    (found: Found) => {
      if (found.row === null) return;
      setTarget(found);
      targetRow.current = found.row;
      follow(false);
      const { height, rowHeight } = extentNow.current;
      const above = Math.floor(height / rowHeight / 3);
      place.current = { row: Math.max(0, found.row - above), offset: 0 };
      ask();
      arrange();
    },
    [ask, arrange, follow],
  );

  useImperativeHandle(
    props.handle,
    () => ({
      seek: (wanted) => client.seek(view, wanted),
      show,
      async nextHit(direction) {
        const first = place.current.row;
        const visible = Math.ceil(extentNow.current.height / extentNow.current.rowHeight);
        const current = block.current?.querySelector<HTMLElement>('.is-target');
        const at = current ? Number(current.dataset.row) : -1;
        const isVisible = at >= first && at < first + visible;
        const row = isVisible ? at : direction > 0 ? first - 1 : first + visible;
        const found = await client.seek(view, { kind: 'hit', row, direction });
        show(found);
        return found;
      },
      toTop: () => {
        follow(false);
        place.current = TOP;
        ask();
        arrange();
        syncBar();
      },
      focus: () => scroller.current?.focus(),
    }),
    [client, view, show, ask, arrange, follow, syncBar],
  );

  const onKeyDown = (event: KeyboardEvent) => {
    const page = height - rowHeight;
    const steps: Record<string, number> = { ArrowUp: -rowHeight, ArrowDown: rowHeight, PageUp: -page, PageDown: page, ' ': event.shiftKey ? -page : page };
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = steps[event.key];
    if (step !== undefined) scrollBy(step);
    else if (event.key === 'Home') {
      follow(false);
      go(TOP, false);
      syncBar();
    } else if (event.key === 'End') follow(true);
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={scroller}
      className={`log-scroller${isWrapped ? ' is-wrapped' : ''}`}
      style={{ fontSize, lineHeight: `${rowHeight}px` }}
      tabIndex={0}
      role="log"
      // A log of thousands of lines a second cannot be read out; what a search found is announced.
      aria-live="off"
      aria-label={words.label}
      data-total={total}
      data-following={isFollowing}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        isDragging.current = event.pointerType === 'mouse' && event.target === scroller.current;
      }}
    >
      <div className="log-spacer" style={{ height: Math.max(height, scrollHeight(extent)) }}>
        <div className="log-layer" style={{ height }}>
          <div className="log-block" ref={block}>
            {frame?.rows.map((row) => (
              <LogRow
                key={`${row.log}.${row.line}`}
                row={row}
                label={labels?.get(row.log) ?? null}
                stamp={formatStamp ? formatStamp(row.stamp) : ''}
                isTarget={row.line === target?.line && row.log === target.log}
                words={words}
                onDetail={onDetail}
                onLink={onLink}
              />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

/** The place whose top edge lies `top` pixels below that of the drawn rows. */
function placeAt(rows: HTMLElement, top: number): Place | null {
  for (const element of rows.children) {
    const row = element as HTMLElement;
    if (row.offsetTop + row.offsetHeight > top) return { row: Number(row.dataset.row), offset: Math.max(0, top - row.offsetTop) };
  }
  return null;
}
