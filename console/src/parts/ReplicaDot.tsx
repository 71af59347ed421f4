const HUES = 8;

/** The CSS colour of the n-th replica, the same in logs, charts and timelines. */
export function replicaColour(index: number): string {
  return `var(--pl-replica-${((index % HUES) + HUES) % HUES})`;
}

/** A dot in the replica's colour; a ring from the ninth replica on, so that two of one colour stay apart. */
export function ReplicaDot({ index, label }: { index: number; label?: string }) {
  const colour = replicaColour(index);
  const isRing = Math.floor(index / HUES) % 2 === 1;
  return (
    <span
      className="pl-replica-dot"
      style={isRing ? { boxShadow: `inset 0 0 0 2px ${colour}` } : { background: colour }}
      {...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': true })}
    />
  );
}
