import { AppPage } from '../../interactive/AppPage.tsx';

export default function NotebooksPage() {
  return <AppPage kind="Notebook" />;
}
