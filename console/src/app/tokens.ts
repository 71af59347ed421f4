/** The colours of the page, in both themes. Every text colour has a contrast of at least 4.5:1 on the surfaces (tokens.test.ts). */

export type ThemeName = 'light' | 'dark';

/** Where a job, replica or object is, as people see it. */
export type Tone = 'running' | 'succeeded' | 'failed' | 'pending' | 'paused' | 'unknown';

export interface Palette {
  canvas: string;
  surface: string;
  raised: string;
  sunken: string;
  line: string;
  lineStrong: string;
  ink: string;
  inkSoft: string;
  inkFaint: string;
  brand: string;
  brandSoft: string;
  onBrand: string;
  accent: string;
  focus: string;
  tones: Record<Tone, { text: string; soft: string; solid: string }>;
}

export const palettes: Record<ThemeName, Palette> = {
  light: {
    canvas: '#F6F7F9',
    surface: '#FFFFFF',
    raised: '#FFFFFF',
    sunken: '#F1F3F7',
    line: '#E4E7EE',
    lineStrong: '#CBD1DD',
    ink: '#111827',
    inkSoft: '#465065',
    inkFaint: '#626C82',
    brand: '#2B5FE3',
    brandSoft: '#EAF0FE',
    onBrand: '#FFFFFF',
    accent: '#F2A20C',
    focus: '#2B5FE3',
    tones: {
      running: { text: '#1F51CC', soft: '#E8EFFD', solid: '#2B5FE3' },
      succeeded: { text: '#0F6B43', soft: '#E3F5EB', solid: '#1A9A60' },
      failed: { text: '#B4232C', soft: '#FDEBEB', solid: '#D93640' },
      pending: { text: '#8A4B06', soft: '#FDF2DC', solid: '#E08E0B' },
      paused: { text: '#6739B8', soft: '#F1EBFC', solid: '#8455D6' },
      unknown: { text: '#525C70', soft: '#EDF0F4', solid: '#8791A5' },
    },
  },
  dark: {
    canvas: '#0F1521',
    surface: '#161E2D',
    raised: '#1D2738',
    sunken: '#111927',
    line: '#263146',
    lineStrong: '#3A4862',
    ink: '#E7EBF3',
    inkSoft: '#B3BCCD',
    inkFaint: '#929DB3',
    brand: '#7DA2FF',
    brandSoft: '#1E2C4D',
    onBrand: '#0B1220',
    accent: '#F2A20C',
    focus: '#9DB9FF',
    tones: {
      running: { text: '#8FB0FF', soft: '#1B2A4A', solid: '#6C95FF' },
      succeeded: { text: '#5BD79B', soft: '#12322A', solid: '#34B97A' },
      failed: { text: '#FF8E8E', soft: '#3B1F29', solid: '#F05A62' },
      pending: { text: '#F5B94A', soft: '#36290F', solid: '#E5A01F' },
      paused: { text: '#BFA1FF', soft: '#2B2346', solid: '#9A74EA' },
      unknown: { text: '#A8B2C5', soft: '#222C3D', solid: '#77839A' },
    },
  },
};

/** Eight hues that stay apart for colour-blind people; a replica has the same one in logs, charts and timelines. */
export const replicaColours: Record<ThemeName, readonly string[]> = {
  light: ['#1F5FC9', '#A8490A', '#0B7355', '#A22B72', '#70600A', '#0A6E8C', '#6B46B8', '#5A6372'],
  dark: ['#7FB0FF', '#FFA866', '#4FD1A5', '#F08AC4', '#D9C64A', '#5CC8E8', '#B79CFF', '#AEB8C9'],
};

/** Names of CSS variables and their values, for `style.setProperty`. */
export function cssVariables(theme: ThemeName): Record<string, string> {
  const { tones, ...plain } = palettes[theme];
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(plain)) variables[`--pl-${kebab(name)}`] = value;
  for (const [tone, colours] of Object.entries(tones))
    for (const [part, value] of Object.entries(colours)) variables[`--pl-${tone}-${part}`] = value;
  replicaColours[theme].forEach((colour, index) => {
    variables[`--pl-replica-${index}`] = colour;
  });
  return variables;
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The contrast of two colours as WCAG defines it: 1 to 21. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = parseInt(colour.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
