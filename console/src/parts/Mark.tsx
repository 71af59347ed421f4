/** Three slanted strokes in echelon: a paceline from above, its leader in the accent colour. */
export function Mark({ size = 24, isQuiet = false }: { size?: number; isQuiet?: boolean }) {
  const [first, second, third] = isQuiet
    ? ['var(--pl-line-strong)', 'var(--pl-line-strong)', 'var(--pl-line-strong)']
    : ['var(--pl-accent)', 'var(--pl-brand)', 'var(--pl-brand)'];
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" strokeWidth={4.6} strokeLinecap="round" aria-hidden>
      <path stroke={first} d="M24.4 5 19 16.6" />
      <path stroke={second} d="M17 10.2 11.6 21.8" opacity={isQuiet ? 0.75 : 1} />
      <path stroke={third} d="M9.6 15.4 4.2 27" opacity={isQuiet ? 0.5 : 0.62} />
    </svg>
  );
}
