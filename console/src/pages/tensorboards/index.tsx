import { AppPage } from '../../interactive/AppPage.tsx';

export default function TensorBoardsPage() {
  return <AppPage kind="TensorBoard" />;
}
