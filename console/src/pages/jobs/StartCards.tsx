import { CodeOutlined, ExperimentOutlined, FileTextOutlined, FormOutlined } from '@ant-design/icons';
import type { ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';

type Card = 'train' | 'form' | 'yaml' | 'notebook';

const CARDS: Record<Card, { to: string; icon: ReactNode }> = {
  train: { to: '/train', icon: <CodeOutlined /> },
  form: { to: '/create/PyTorchTrainingJob', icon: <FormOutlined /> },
  yaml: { to: '/create', icon: <FileTextOutlined /> },
  notebook: { to: '/notebooks', icon: <ExperimentOutlined /> },
};

/** Ways to begin, each a card. */
export function StartCards({ cards }: { cards: Card[] }) {
  const { overview } = useText();
  return (
    <div className="pl-start">
      {cards.map((card) => {
        const [title, hint] = overview.cards[card];
        return (
          <Link key={card} to={CARDS[card].to} className="pl-start-card">
            <span className="pl-start-icon" aria-hidden>
              {CARDS[card].icon}
            </span>
            <strong>{title}</strong>
            <span>{hint}</span>
          </Link>
        );
      })}
    </div>
  );
}
