// Measures the log viewer's worker without a browser: `node src/logs/bench.mjs [LINES]`. Best of three; prints figures and the bounds of the design.
import { build } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const home = dirname(fileURLToPath(import.meta.url));
const COUNT = Number(process.argv[2] ?? 1_000_000);
const ORIGIN = Date.UTC(2030, 0, 1) / 1000;
const CHUNK = 256 * 1024;

const folder = mkdtempSync(join(tmpdir(), 'paceline-bench-'));
const source = ['buffer', 'order', 'search', 'levels', 'view', 'session'].map((name) => `export * from './${name}.ts';`).join('\n');
await build({
  stdin: { contents: source, resolveDir: home, loader: 'ts' },
  bundle: true,
  format: 'esm',
  platform: 'node',
  outfile: join(folder, 'logs.mjs'),
});
const { compile, LogBuffer, LogSession, View, EVERYTHING } = await import(pathToFileURL(join(folder, 'logs.mjs')).href);
rmSync(folder, { recursive: true });

function stamp(nanoseconds) {
  const second = Math.floor(nanoseconds / 1e9);
  return `${new Date((ORIGIN + second) * 1000).toISOString().slice(0, 19)}.${String(nanoseconds - second * 1e9).padStart(9, '0')}Z`;
}

/** Lines like those of a training script: about 100 bytes, some in Chinese, some coloured, an error now and then. */
function linesFor(replica, count, every) {
  const lines = [];
  for (let line = 0; line < count; line++) {
    const rest = line % 5000 === 4999 ? 'ERROR: rank lost' : line % 100 === 0 ? '\x1b[32m轮次完成\x1b[0m' : 'throughput 1834.2 samples/s';
    lines.push(`${stamp(line * every + replica)} [replica ${replica}] epoch ${Math.floor(line / 1000)} step ${line} loss 0.${(line * 7919) % 10000} ${rest}\n`);
  }
  return lines;
}

function chunksOf(lines) {
  const bytes = new TextEncoder().encode(lines.join(''));
  const chunks = [];
  for (let at = 0; at < bytes.length; at += CHUNK) chunks.push(bytes.slice(at, at + CHUNK));
  return chunks;
}

function best(label, bound, measure) {
  let least = Infinity;
  for (let round = 0; round < 3; round++) {
    const begin = performance.now();
    measure();
    least = Math.min(least, performance.now() - begin);
  }
  console.log(`${label.padEnd(52)} ${(least / 1000).toFixed(3).padStart(8)} s   ${bound}`);
}

const chunks = chunksOf(linesFor(0, COUNT, 50_000));
console.log(`${COUNT.toLocaleString('en')} lines, ${(chunks.reduce((sum, chunk) => sum + chunk.length, 0) / 1e6).toFixed(0)} MB on the wire, Node ${process.version}`);

let log;
best('append', 'open ≤ 4 s', () => {
  log = new LogBuffer(ORIGIN);
  for (const chunk of chunks) log.append(chunk);
});
const queries = [
  ['plain, any case, rare', { text: 'rank LOST', isRegex: false, matchCase: false }],
  ['plain, case, in every line', { text: 'loss', isRegex: false, matchCase: true }],
  ['plain, Chinese', { text: '轮次', isRegex: false, matchCase: false }],
  ['expression', { text: 'loss 0\\.99\\d+ ', isRegex: true, matchCase: true }],
  ['expression, any case', { text: 'step \\d+77 LOSS', isRegex: true, matchCase: false }],
];
for (const [label, query] of queries)
  best(`search: ${label}`, '≤ 0.5 s', () => {
    const view = new View([log], compile(query), { ...EVERYTHING, context: 2 });
    view.update();
  });
best('filter by level', '≤ 0.5 s', () => new View([log], null, { ...EVERYTHING, level: 2 }).update());

const replicas = Array.from({ length: 24 }, (_, replica) => {
  const buffer = new LogBuffer(ORIGIN);
  for (const chunk of chunksOf(linesFor(replica, Math.ceil(COUNT / 24), 1_200_000))) buffer.append(chunk);
  return buffer;
});
best('merge 24 replicas, interleaved line by line', '', () => new View(replicas, null).update());
for (const buffer of replicas) buffer.append(new TextEncoder().encode(`${stamp(60e9)} last\n`));

// Follow: 20,000 lines a second into a view with a search and a filter, a frame every 50 ms.
const session = new LogSession(() => {}, ORIGIN);
session.receive({ type: 'open', log: 1 });
const spec = { logs: [1], query: queries[0][1], onlyMatching: true, context: 2, level: 0, from: '', to: '' };
session.receive({ type: 'view', view: 1, spec });
session.receive({ type: 'viewport', view: 1, request: 1, from: 0, count: 60, anchor: 0, isFollowing: true });
for (const chunk of chunks) session.receive({ type: 'bytes', log: 1, bytes: chunk, receipt: 0 });
session.tick();
const second = chunksOf(linesFor(0, 20_000, 50_000));
const begin = performance.now();
for (let frame = 0; frame < 20; frame++) {
  const share = Math.ceil(second.length / 20);
  for (const chunk of second.slice(frame * share, (frame + 1) * share)) session.receive({ type: 'bytes', log: 1, bytes: chunk, receipt: 0 });
  session.receive({ type: 'drawn', view: 1 });
  session.tick();
}
console.log(`${'follow: work for one second of 20,000 lines, 20 frames'.padEnd(52)} ${((performance.now() - begin) / 1000).toFixed(3).padStart(8)} s   ≤ 1 s`);
console.log(`memory ${Math.round(process.memoryUsage().rss / 1e6)} MB`);
