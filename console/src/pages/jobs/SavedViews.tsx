import { BookOutlined, DeleteOutlined } from '@ant-design/icons';
import { Button, Input, Popover } from 'antd';
import { useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { CopyButton } from '../../parts/index.ts';
import { LONGEST_NAME, useSavedViews, viewUrl, withView } from './savedViews.ts';

/** Named views of the list: open one, keep the one that is shown, or copy a link to it. */
export function SavedViews({ query, isNarrow }: { query: string; isNarrow: boolean }) {
  const { views: words } = useText().jobs;
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover trigger="click" placement={isNarrow ? 'bottom' : 'bottomRight'} open={isOpen} onOpenChange={setOpen} content={<Content query={query} onEnd={() => setOpen(false)} />} destroyOnHidden>
      <Button icon={<BookOutlined />} aria-label={words.title} aria-expanded={isOpen} data-action="views">
        {!isNarrow && words.title}
      </Button>
    </Popover>
  );
}

function Content({ query, onEnd }: { query: string; onEnd: () => void }) {
  const { views: words } = useText().jobs;
  const { common } = useText();
  const [views, setViews] = useSavedViews();
  const [name, setName] = useState('');
  const save = () => {
    const clean = name.trim();
    if (clean === '') return;
    setViews(withView(views, { name: clean, query }));
    setName('');
  };
  return (
    <div className="pl-stack pl-views">
      {views.length === 0 ? (
        <p className="pl-soft">{words.none}</p>
      ) : (
        <ul>
          {views.map((view) => (
            <li key={view.name} data-view={view.name}>
              <Link to={viewUrl(view)} aria-current={view.query === query ? 'true' : undefined} onClick={onEnd} translate="no">
                {view.name}
              </Link>
              <Button type="text" size="small" icon={<DeleteOutlined />} aria-label={words.remove(view.name)} onClick={() => setViews(views.filter((other) => other !== view))} />
            </li>
          ))}
        </ul>
      )}
      <form
        className="pl-row"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <Input value={name} maxLength={LONGEST_NAME} placeholder={words.name} aria-label={words.name} onChange={(event) => setName(event.target.value)} />
        <Button htmlType="submit" type="primary" disabled={name.trim() === ''}>
          {common.actions.save}
        </Button>
      </form>
      <CopyButton type="default" text={() => location.origin + viewUrl({ query })}>
        {words.copyLink}
      </CopyButton>
    </div>
  );
}
