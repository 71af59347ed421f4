/** "1 job", "2 jobs". */
export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** 1st, 2nd, 3rd, 4th, 11th. */
export function ordinal(number: number): string {
  const suffix = number % 100 >= 11 && number % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][number % 10] ?? 'th');
  return `${number.toLocaleString('en')}${suffix}`;
}
