import './app/guards.ts';
import './app/loginCode.ts';
import { createRoot } from 'react-dom/client';
import { Console } from './app/Console.tsx';

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<Console />);
