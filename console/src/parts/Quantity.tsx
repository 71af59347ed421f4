const BINARY = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** Bytes with a binary unit: 4.5 Gi. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)} B` : `${trim(value)} ${BINARY[unit] ?? ''}`;
}

/** Cores, with as many digits as matter: 0.25, 8. */
export function coresText(cores: number): string {
  return cores !== 0 && Math.abs(cores) < 0.01 ? `${trim(cores * 1000)}m` : trim(cores);
}

function trim(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

const UNITS: Record<string, number> = {
  '': 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** The number that a Kubernetes quantity means ("500m", "4Gi"), or `undefined` if it is none. */
export function parseQuantity(quantity: string | number): number | undefined {
  if (typeof quantity === 'number') return quantity;
  const match = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)(n|u|m|k|[KMGTPE]i?)?$/.exec(quantity.trim());
  const factor = UNITS[match?.[2] ?? ''];
  const value = Number(match?.[1]);
  return match === null || factor === undefined || Number.isNaN(value) ? undefined : value * factor;
}

/** An amount of a resource: bytes for memory and storage, cores for CPU, a plain number for devices. */
export function Quantity({ value, of }: { value: string | number | null | undefined; of: 'cpu' | 'bytes' | 'count' }) {
  const number = value === null || value === undefined ? undefined : parseQuantity(value);
  if (number === undefined) return <span className="pl-faint">–</span>;
  const text = of === 'bytes' ? bytesText(number) : of === 'cpu' ? coresText(number) : String(number);
  return <span className="pl-figures pl-nowrap">{text}</span>;
}
