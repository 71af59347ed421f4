// Bundles src/ into dist/ (or PACELINE_CONSOLE_OUT): assets/ with hashed names, each with a gzipped twin; licenses.txt;
// index.html, in which the server puts its nonce for __NONCE__; manifest.json with sizes. The same sources give the same bytes.
import { build, context } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const home = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.env.PACELINE_CONSOLE_OUT ?? join(home, 'dist'));
const watching = process.argv.includes('--watch');
const FIRST_PAGE_BOUND = 450 * 1024;

const shared = {
  bundle: true,
  minify: true,
  format: 'esm',
  // The packages may lie behind a link; the hashes in the names come from paths.
  preserveSymlinks: true,
  target: ['chrome109', 'firefox115', 'safari16.4'],
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none',
  logLevel: 'warning',
  absWorkingDir: home,
};

// Every stylesheet below src/ goes into one file, since a lazy chunk cannot bring its own: importing CSS from a module is allowed and does nothing.
const styles = {
  name: 'styles',
  setup(bundle) {
    bundle.onResolve({ filter: /^virtual:styles$/ }, () => ({ path: 'styles.css', namespace: 'styles' }));
    bundle.onLoad({ filter: /.*/, namespace: 'styles' }, () => ({
      contents: files('src', '.css').map((file) => `@import "./${file}";`).join('\n'),
      loader: 'css',
      resolveDir: home,
      watchDirs: [join(home, 'src')],
    }));
    bundle.onResolve({ filter: /\.css$/ }, (args) =>
      args.kind === 'import-statement' ? { path: args.path, namespace: 'ignored' } : undefined,
    );
    bundle.onLoad({ filter: /.*/, namespace: 'ignored' }, () => ({ contents: '' }));
  },
};

// `import url from './log.worker.ts?worker'` gives the address of a worker, bundled by itself.
const workers = {
  name: 'workers',
  setup(bundle) {
    bundle.onResolve({ filter: /\?worker$/ }, (args) => {
      const source = resolve(args.resolveDir, args.path.replace(/\?worker$/, ''));
      // Relative, since the hashes in the names come from paths.
      return { path: relative(home, source).replace(/\.ts$/, '.js'), namespace: 'worker', pluginData: source };
    });
    bundle.onLoad({ filter: /.*/, namespace: 'worker' }, async (args) => {
      const result = await build({ ...shared, entryPoints: [args.pluginData], format: 'iife', write: false, metafile: true });
      return {
        contents: result.outputFiles[0].contents,
        loader: 'file',
        watchFiles: Object.keys(result.metafile.inputs).map((file) => join(home, file)),
      };
    });
  },
};

// `import { Table } from 'antd'` becomes an import of that component's own module. Otherwise the page that comes first would load the
// components of all pages: esbuild divides modules between chunks, and antd's index is one module.
const components = {
  name: 'components',
  setup(bundle) {
    bundle.onLoad({ filter: /\/src\/.*\.tsx?$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8').replace(
        /^import \{([^}]*)\} from '(antd|@ant-design\/icons)';/gm,
        (_statement, names, from) => names.split(',').map((name) => directImport(name.trim(), from)).join(' '),
      );
      return { contents: text, loader: path.endsWith('x') ? 'tsx' : 'ts' };
    });
  },
};

function directImport(specifier, from) {
  if (specifier === '' || specifier.startsWith('type ')) return '';
  const [name, local = name] = specifier.split(/ as /);
  const folder = name.replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
  return `import ${local} from '${from === 'antd' ? `antd/es/${folder}/index.js` : `@ant-design/icons/es/icons/${name}`}';`;
}

// Writes index.html and manifest.json beside the assets, and the gzipped twins.
const finish = {
  name: 'finish',
  setup(bundle) {
    bundle.onEnd((result) => {
      if (result.errors.length === 0) publish(result);
    });
  },
};

function files(folder, suffix) {
  return readdirSync(join(home, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => relative(home, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

function publish(result) {
  const staging = `${out}.new`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(join(staging, 'assets'), { recursive: true });
  const manifest = { entry: '', style: '', icon: '', first: [], files: {} };
  for (const output of result.outputFiles) store(staging, manifest, basename(output.path), output.contents);
  const icon = readFileSync(join(home, 'src/app/mark.svg'));
  manifest.icon = `assets/mark-${digest(icon).slice(0, 8).toUpperCase()}.svg`;
  store(staging, manifest, basename(manifest.icon), icon);
  describe(result.metafile, manifest);
  writeFileSync(join(staging, 'index.html'), page(manifest));
  writeFileSync(join(staging, 'licenses.txt'), licenses(result.metafile));
  writeFileSync(join(staging, 'manifest.json'), `${JSON.stringify(manifest, null, 1)}\n`);
  rmSync(out, { recursive: true, force: true });
  renameSync(staging, out);
  report(manifest);
}

function store(folder, manifest, name, contents) {
  const path = `assets/${name}`;
  writeFileSync(join(folder, path), contents);
  const entry = { bytes: contents.length, sha256: digest(contents) };
  if (/\.(js|css|svg)$/.test(name)) {
    const zipped = gzipSync(contents, { level: 9 });
    writeFileSync(join(folder, `${path}.gz`), zipped);
    entry.gzip = zipped.length;
  }
  manifest.files[path] = entry;
}

// What the page at `/` loads: the entry and what it starts, the overview, the words (of the longer language), the stylesheet and the font for text.
const START = 'src/start.tsx';
const FIRST = ['src/pages/overview/index.tsx', 'src/locales/zh/index.ts', 'node_modules/antd/es/locale/zh_CN.js'];

function describe(metafile, manifest) {
  const outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([path, output]) => [`assets/${basename(path)}`, output]));
  const first = new Set();
  const follow = (path) => {
    if (first.has(path) || outputs[path] === undefined) return;
    first.add(path);
    for (const reference of outputs[path].imports)
      if (reference.kind === 'import-statement') follow(`assets/${basename(reference.path)}`);
  };
  for (const [path, output] of Object.entries(outputs)) {
    if (output.entryPoint === 'src/main.ts') manifest.entry = path;
    if (output.entryPoint === 'styles:styles.css') manifest.style = path;
  }
  follow(manifest.entry);
  for (const [path, output] of Object.entries(outputs)) if (output.entryPoint === START) follow(path);
  manifest.preload = [...first].filter((path) => path !== manifest.entry).sort();
  for (const [path, output] of Object.entries(outputs)) if (FIRST.includes(output.entryPoint)) follow(path);
  first.add(manifest.style);
  for (const path of Object.keys(manifest.files)) if (/inter-latin.*\.woff2$/.test(path)) first.add(path);
  manifest.first = [...first].sort();
  manifest.files = Object.fromEntries(Object.entries(manifest.files).sort(([a], [b]) => (a < b ? -1 : 1)));
  manifest.version = digest(JSON.stringify(manifest.files)).slice(0, 16);
}

function page(manifest) {
  return readFileSync(join(home, 'index.html'), 'utf8')
    .replace('__ICON__', `/${manifest.icon}`)
    .replace('__STYLE__', `/${manifest.style}`)
    .replace('__SCRIPT__', `/${manifest.entry}`)
    .replace('__PRELOAD__', manifest.preload.map((path) => `<link rel="modulepreload" href="/${path}" />`).join('\n    '));
}

// The licences of the packages that are in the bundle, which whoever distributes it must pass on.
function licenses(metafile) {
  const names = Object.keys(metafile.inputs).map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  const packages = [...new Set(names.filter((name) => name !== undefined))].sort();
  return packages.map((name) => `${licence(join(home, 'node_modules', name))}\n`).join(`${'-'.repeat(80)}\n`);
}

function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const text = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file)).sort()[0];
  return `${name} ${version} (${license})\n\n${text === undefined ? '' : readFileSync(join(folder, text), 'utf8').trim()}`;
}

function digest(contents) {
  return createHash('sha256').update(contents).digest('hex');
}

function report(manifest) {
  const size = (path) => manifest.files[path].gzip ?? manifest.files[path].bytes;
  const sum = (paths) => paths.reduce((total, path) => total + size(path), 0);
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} KB`;
  const first = sum(manifest.first);
  for (const path of Object.keys(manifest.files).sort((a, b) => size(b) - size(a)).slice(0, 12))
    console.log(`${kilobytes(size(path)).padStart(8)}  ${path}${manifest.first.includes(path) ? '  (first page)' : ''}`);
  console.log(`first page ${kilobytes(first)} gzipped, all ${kilobytes(sum(Object.keys(manifest.files)))}; version ${manifest.version}`);
  if (first > FIRST_PAGE_BOUND) console.warn(`the first page is larger than ${kilobytes(FIRST_PAGE_BOUND)}`);
}

const options = {
  ...shared,
  entryPoints: { main: 'src/main.ts', styles: 'virtual:styles' },
  outdir: out,
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  publicPath: '/assets',
  splitting: true,
  metafile: true,
  write: false,
  loader: { '.woff2': 'file', '.svg': 'file' },
  plugins: [styles, workers, components, finish],
};

if (watching) await (await context(options)).watch();
else await build(options);
