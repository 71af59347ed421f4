/** The files of a volume: walk through folders, look into files, bring files in and out. */
import { ArrowLeftOutlined, DownloadOutlined, FileImageOutlined, FileOutlined, FileTextOutlined, FolderAddOutlined, FolderOutlined, LineChartOutlined, LinkOutlined, MoreOutlined, ReloadOutlined, UploadOutlined } from '@ant-design/icons';
import { Button, Dropdown, Input, Modal, Table } from 'antd';
import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react';
import { asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, useQuery } from '../../app/router.tsx';
import { Ago, bytesText, Confirm, Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { crumbs, files, filesUrl, join, openVolume, readableName, type ClaimRef, type FileEntry, type FilePage } from '../../volumes/client.ts';
import { FolderCurves } from './FolderCurves.tsx';
import { kindOf } from './kinds.ts';
import { Preview } from './Preview.tsx';
import { UploadList, useUploads } from './Uploads.tsx';

const ICONS = { image: <FileImageOutlined />, text: <FileTextOutlined />, binary: <FileOutlined />, events: <LineChartOutlined /> };

interface Folder {
  path: string;
  entries: FileEntry[];
  total: number;
  next: string;
}

/** A folder with as many pages as were asked for. */
function useFolder(ref: ClaimRef, path: string) {
  const [folder, setFolder] = useState<Folder>();
  const [error, setError] = useState<ApiError>();
  const [count, setCount] = useState(0);
  const refresh = useCallback(() => setCount((old) => old + 1), []);
  useEffect(() => {
    const abort = new AbortController();
    const keep = (page: FilePage) => setFolder({ path, ...page });
    openVolume(ref, abort.signal)
      .then(() => files.list(ref, path, '', abort.signal))
      .then((page) => {
        if (abort.signal.aborted) return;
        keep(page);
        setError(undefined);
      })
      .catch((failure: unknown) => !abort.signal.aborted && setError(asApiError(failure)));
    return () => abort.abort();
  }, [ref.namespace, ref.claim, path, count]);
  const more = async () => {
    if (folder === undefined) return;
    const page = await files.list(ref, path, folder.next);
    setFolder((old) => (old?.path === path ? { path, ...page, entries: [...old.entries, ...page.entries] } : old));
  };
  return { folder: folder?.path === path ? folder : undefined, error, refresh, more };
}

type Question = { act: 'folder' } | { act: 'rename' | 'remove'; entry: FileEntry };

export function Browser({ namespace, claim }: ClaimRef) {
  const { volumes } = useText();
  const ref = { namespace, claim };
  const [query, setQuery] = useQuery();
  const path = query.get('path') ?? '';
  const { folder, error, refresh, more } = useFolder(ref, path);
  const uploads = useUploads(ref, refresh);
  const [find, setFind] = useState('');
  const [question, setQuestion] = useState<Question | null>(null);
  const [isDropping, setDropping] = useState(false);
  const open = (next: string) => {
    setFind('');
    setQuery({ path: next, file: null, curves: null }, {});
  };
  const shown = query.get('file');
  const drop = (event: React.DragEvent) => {
    event.preventDefault();
    setDropping(false);
    uploads.add([...event.dataTransfer.files], path);
  };
  return (
    <Page
      name="files"
      title={claim}
      heading={
        <div className="pl-row">
          <Link to="/volumes" className="pl-back" aria-label={volumes.back} title={volumes.back}>
            <ArrowLeftOutlined />
          </Link>
          <h1>{claim}</h1>
        </div>
      }
      actions={<Tools onFiles={(chosen) => uploads.add(chosen, path)} onFolder={() => setQuestion({ act: 'folder' })} onRefresh={refresh} curves={() => setQuery({ curves: '1' })} archive={filesUrl(ref, 'archive', { path })} />}
    >
      <div className="pl-row pl-files-bar">
        <nav aria-label={volumes.path} className="pl-crumbs">
          {[{ name: volumes.root, path: '' }, ...crumbs(path)].map((crumb, index, all) =>
            index === all.length - 1 ? (
              <span key={crumb.path} data-folder={crumb.path}>{readableName(crumb.name)}</span>
            ) : (
              <button key={crumb.path} type="button" className="pl-file-button" onClick={() => open(crumb.path)}><span className="pl-file-name">{readableName(crumb.name)}</span></button>
            ),
          )}
        </nav>
        <Input.Search allowClear className="pl-curves-find pl-push" placeholder={volumes.filter} aria-label={volumes.filter} value={find} onChange={(event) => setFind(event.target.value)} />
      </div>
      <UploadList uploads={uploads} />
      {error && <ErrorNotice error={error} extra={<Button size="small" onClick={refresh}>{volumes.refresh}</Button>} />}
      {query.get('curves') !== null && <FolderCurves claim={ref} path={path} onClose={() => setQuery({ curves: null })} />}
      <div className={isDropping ? 'pl-files pl-files-drop' : 'pl-files'} data-drop={volumes.drop} onDragOver={(event) => { event.preventDefault(); setDropping(true); }} onDragLeave={() => setDropping(false)} onDrop={drop}>
        {folder === undefined ? !error && <><p className="pl-soft">{volumes.waking}</p><Loading rows={8} /></> : <Entries claim={ref} folder={folder} find={find} onOpen={open} onPreview={(name) => setQuery({ file: name })} onQuestion={setQuestion} onMore={more} />}
      </div>
      {shown !== null && <Preview claim={ref} path={join(path, shown)} onClose={() => setQuery({ file: null })} />}
      <Questions claim={ref} path={path} question={question} onClose={() => setQuestion(null)} onDone={() => { setQuestion(null); refresh(); }} />
    </Page>
  );
}

function Tools({ onFiles, onFolder, onRefresh, curves, archive }: { onFiles: (files: File[]) => void; onFolder: () => void; onRefresh: () => void; curves: () => void; archive: string }) {
  const { volumes } = useText();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={<ReloadOutlined />} onClick={onRefresh} aria-label={volumes.refresh} title={volumes.refresh} />
      <Button icon={<LineChartOutlined />} onClick={curves}>{volumes.curves}</Button>
      <Button icon={<DownloadOutlined />} href={archive} download>{volumes.downloadFolder}</Button>
      <Button icon={<FolderAddOutlined />} onClick={onFolder} data-action="new-folder">{volumes.newFolder}</Button>
      <Button type="primary" icon={<UploadOutlined />} onClick={() => input.current?.click()}>{volumes.upload}</Button>
      <input ref={input} type="file" multiple hidden aria-label={volumes.upload} data-upload onChange={(event) => { onFiles([...(event.target.files ?? [])]); event.target.value = ''; }} />
    </>
  );
}

interface EntriesProps {
  claim: ClaimRef;
  folder: Folder;
  find: string;
  onOpen: (path: string) => void;
  onPreview: (name: string) => void;
  onQuestion: (question: Question) => void;
  onMore: () => Promise<void>;
}

function Entries({ claim, folder, find, onOpen, onPreview, onQuestion, onMore }: EntriesProps) {
  const { volumes } = useText();
  const entries = folder.entries.filter((entry) => entry.name.toLowerCase().includes(find.toLowerCase()));
  const [isBusy, setBusy] = useState(false);
  if (folder.entries.length === 0) return <Empty title={volumes.folderEmpty} hint={volumes.folderEmptyHint} icon={<FolderOutlined />} />;
  const url = (entry: FileEntry, route: string) => filesUrl(claim, route, { path: join(folder.path, entry.name) });
  const name = (entry: FileEntry): ReactNode => {
    const label = <span className="pl-file-name">{readableName(entry.name)}</span>;
    const icon = entry.type === 'folder' ? <FolderOutlined /> : entry.type === 'link' ? <LinkOutlined /> : ICONS[kindOf(entry.name)];
    const follow = () => (entry.type === 'folder' ? onOpen(join(folder.path, entry.name)) : onPreview(entry.name));
    if (entry.type === 'other') return <span className="pl-row">{icon} {label}</span>;
    return (
      <button type="button" className="pl-file-button" onClick={follow} data-entry={entry.name}>
        {icon} {label}
        {entry.target !== undefined && <span className="pl-faint">{volumes.link(readableName(entry.target))}</span>}
      </button>
    );
  };
  return (
    <>
      <p className="pl-faint pl-figures" data-count={folder.total}>{volumes.count(folder.entries.length, folder.total)}</p>
      <Table<FileEntry>
        size="middle"
        rowKey="name"
        dataSource={entries}
        pagination={false}
        virtual={entries.length > 200}
        scroll={entries.length > 200 ? { y: 560, x: 720 } : { x: 'max-content' }}
        columns={[
          { key: 'name', title: volumes.name, width: 420, render: (_, entry) => name(entry) },
          { key: 'size', title: volumes.bytes, align: 'right', width: 110, render: (_, entry) => entry.type === 'file' && <span className="pl-figures pl-nowrap">{bytesText(entry.size)}</span> },
          { key: 'modified', title: volumes.modified, width: 150, render: (_, entry) => <Ago time={entry.modified * 1000} /> },
          { key: 'owner', title: volumes.owner, width: 80, render: (_, entry) => <span className="pl-figures pl-soft">{entry.uid}</span> },
          {
            key: 'actions',
            align: 'right',
            width: 110,
            render: (_, entry) => (
              <span className="pl-row pl-volume-actions">
                {(entry.type === 'file' || entry.type === 'folder') && <Button size="small" type="text" icon={<DownloadOutlined />} href={url(entry, entry.type === 'file' ? 'file' : 'archive')} download aria-label={`${volumes.download} ${readableName(entry.name)}`} />}
                <Dropdown
                  trigger={['click']}
                  placement="bottomRight"
                  menu={{ items: [{ key: 'rename', label: volumes.rename }, { key: 'remove', danger: true, label: `${volumes.remove}…` }], onClick: ({ key }) => onQuestion({ act: key as 'rename' | 'remove', entry }) }}
                >
                  <Button size="small" type="text" icon={<MoreOutlined />} aria-label={volumes.moreActions(readableName(entry.name))} />
                </Dropdown>
              </span>
            ),
          },
        ]}
      />
      {folder.next !== '' && (
        <Button loading={isBusy} onClick={() => { setBusy(true); void onMore().finally(() => setBusy(false)); }}>{volumes.more}</Button>
      )}
    </>
  );
}

function Questions({ claim, path, question, onClose, onDone }: { claim: ClaimRef; path: string; question: Question | null; onClose: () => void; onDone: () => void }) {
  const { volumes, common } = useText();
  const [name, setName] = useState('');
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    setName(question?.act === 'rename' ? question.entry.name : '');
    setError(undefined);
  }, [question]);
  const isRemoval = question?.act === 'remove';
  const doomed = isRemoval ? question.entry : null;
  const write = async () => {
    try {
      if (question?.act === 'folder') await files.makeFolder(claim, join(path, name));
      else if (question?.act === 'rename') await files.rename(claim, join(path, question.entry.name), join(path, name));
      onDone();
    } catch (failure) {
      setError(asApiError(failure));
    }
  };
  const isFolder = question?.act === 'folder';
  return (
    <>
      <Modal open={question !== null && !isRemoval} title={isFolder ? volumes.newFolder : volumes.rename} okText={isFolder ? volumes.newFolder : volumes.rename} cancelText={common.actions.cancel} okButtonProps={{ disabled: name === '' || name.includes('/') }} onOk={() => void write()} onCancel={onClose} destroyOnHidden>
        <label className="pl-field">
          <span>{isFolder ? volumes.folderName : volumes.newName}</span>
          <Input autoFocus autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} onPressEnter={() => void write()} />
        </label>
        {error && <ErrorNotice error={error} />}
      </Modal>
      <Confirm open={isRemoval === true} title={volumes.removeTitle(readableName(doomed?.name ?? ''))} action={volumes.remove} isDangerous onCancel={onClose} onConfirm={() => files.remove(claim, join(path, doomed?.name ?? '')).then(onDone)}>
        <p>{doomed?.type === 'folder' ? volumes.removeFolder : volumes.removeFile}</p>
      </Confirm>
    </>
  );
}
