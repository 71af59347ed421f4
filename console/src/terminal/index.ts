export { Terminal } from './Terminal.tsx';
