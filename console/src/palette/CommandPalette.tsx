/** Finds a page, an object or an action by what is typed. A combobox with a list below it, inside a dialog of the browser's own. */
import { SearchOutlined } from '@ant-design/icons';
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent, type SyntheticEvent } from 'react';
import { useText } from '../app/i18n.tsx';
import { useEntries, type Entry } from './useEntries.tsx';

/** So far one page of the list reaches. */
const PAGE = 8;

/** `onClose` takes the palette off the page and gives the focus back before it returns. */
export function CommandPalette({ onClose }: { onClose: () => void }) {
  const { palette: words } = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState('');
  // The entry that arrows or the pointer chose. It stays so where others come before it; without one, the first is meant.
  const [active, setActive] = useState('');
  const id = useId();
  const { groups, isLoading } = useEntries(query);
  const entries = groups.flatMap((group) => group.entries);
  const current = Math.max(0, entries.findIndex((entry) => entry.id === active));

  useLayoutEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, current, query]);

  // The focus is back where it was before anything else asks for it.
  const choose = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const cancel = (event: SyntheticEvent) => {
    event.preventDefault();
    onClose();
  };
  const press = (event: KeyboardEvent) => {
    // A key that ends the composition of a Chinese word chooses nothing.
    if (event.nativeEvent.isComposing) return;
    const count = entries.length;
    const next = { ArrowDown: (current + 1) % count, ArrowUp: (current - 1 + count) % count, PageDown: Math.min(count - 1, current + PAGE), PageUp: Math.max(0, current - PAGE) }[event.key];
    if (event.key === 'Enter') choose(entries[current]);
    else if (event.key === 'Escape') onClose();
    else if (next === undefined) return;
    else setActive(entries[next]?.id ?? '');
    event.preventDefault();
  };

  let place = -1;
  return (
    <dialog ref={dialog} className="pl-palette" aria-label={words.title} onCancel={cancel} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div className="pl-palette-box">
        <div className="pl-palette-field">
          <SearchOutlined aria-hidden />
          <input
            role="combobox"
            aria-label={words.field}
            aria-autocomplete="list"
            aria-expanded={entries.length > 0}
            aria-controls={`${id}-list`}
            aria-activedescendant={entries.length > 0 ? `${id}-${current}` : undefined}
            placeholder={words.field}
            autoComplete="off"
            spellCheck={false}
            maxLength={200}
            value={query}
            onChange={(event) => {
              setQuery(event.target.value);
              setActive('');
            }}
            onKeyDown={press}
          />
          <kbd aria-hidden>Esc</kbd>
        </div>
        {entries.length > 0 && (
          // A click keeps the focus in the field; the scroll bar keeps its own.
          <div role="listbox" id={`${id}-list`} aria-label={words.list} className="pl-palette-list" onMouseDown={(event) => event.target !== event.currentTarget && event.preventDefault()}>
            {groups.map(({ group, entries: some }) => (
              <div key={group} role="group" aria-label={words.groups[group]} data-group={group}>
                <div className="pl-palette-group" aria-hidden>
                  {words.groups[group]}
                </div>
                {some.map((entry) => {
                  place += 1;
                  const index = place;
                  return (
                    <div
                      key={entry.id}
                      id={`${id}-${index}`}
                      role="option"
                      aria-selected={index === current}
                      className="pl-palette-option"
                      onMouseMove={() => index !== current && setActive(entry.id)}
                      onClick={() => choose(entry)}
                    >
                      {entry.icon}
                      <span className="pl-palette-name" translate={entry.isName ? 'no' : undefined}>
                        {entry.label}
                      </span>
                      {entry.detail !== '' && <span className="pl-faint" translate="no">{entry.detail}</span>}
                    </div>
                  );
                })}
              </div>
            ))}
          </div>
        )}
        <p className={entries.length > 0 ? 'pl-hidden' : 'pl-palette-none'} role="status">
          {entries.length > 0 ? words.count(entries.length) : isLoading ? words.loading : words.none}
        </p>
        <p className="pl-palette-keys" aria-hidden>
          <span><kbd>↑</kbd> <kbd>↓</kbd> {words.keys.move}</span>
          <span><kbd>Enter</kbd> {words.keys.choose}</span>
          <span><kbd>Esc</kbd> {words.keys.close}</span>
        </p>
      </div>
    </dialog>
  );
}
