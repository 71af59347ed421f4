// Where a list of very many rows is scrolled to: a row, and pixels into it.
//
// A browser's scroll bar ends at some ten million pixels, and wrapped lines have heights that are known only once they are
// drawn. So the place is a row, moved by pixels through the rows that are drawn; the scroll bar only follows it.

export interface Place {
  row: number;
  offset: number;
}

export interface Extent {
  total: number;
  /** Height of the viewport and of a row that is not drawn. */
  height: number;
  rowHeight: number;
}

/** No browser's limit is lower. */
export const MAX_SCROLL = 8_000_000;

export const TOP: Place = { row: 0, offset: 0 };

/** The height of the scrolled content, as far as the scroll bar is concerned. */
export function scrollHeight({ total, rowHeight }: Extent): number {
  return Math.min(MAX_SCROLL, total * rowHeight);
}

/** Move a place by pixels; `heightOf` knows the rows that are drawn. */
export function move(place: Place, pixels: number, extent: Extent, heightOf: (row: number) => number | undefined): Place {
  let { row } = place;
  let offset = place.offset + pixels;
  const height = (index: number) => heightOf(index) ?? extent.rowHeight;
  while (offset < 0 && row > 0) offset += height(--row);
  while (row < extent.total - 1 && offset >= height(row)) offset -= height(row++);
  return row === 0 && offset < 0 ? TOP : { row, offset };
}

/** Where the scroll bar stands for a place. */
export function scrollTopOf(place: Place, extent: Extent): number {
  const content = extent.total * extent.rowHeight - extent.height;
  const range = scrollHeight(extent) - extent.height;
  if (content <= 0 || range <= 0) return 0;
  return Math.min(range, (place.row * extent.rowHeight + Math.min(place.offset, extent.rowHeight)) * (range / content));
}

/** Which place the scroll bar stands for. */
export function placeOf(scrollTop: number, extent: Extent): Place {
  const content = extent.total * extent.rowHeight - extent.height;
  const range = scrollHeight(extent) - extent.height;
  if (content <= 0 || range <= 0) return TOP;
  const pixels = scrollTop * (content / range);
  const row = Math.min(extent.total - 1, Math.floor(pixels / extent.rowHeight));
  return { row, offset: pixels - row * extent.rowHeight };
}
