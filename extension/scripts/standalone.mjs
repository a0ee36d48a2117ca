// Writes nbcomp/display/explorer.js: the explorer as one script for pages without Jupyter.
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

await build({
  entryPoints: [fileURLToPath(new URL('../lib/standalone.js', import.meta.url))],
  outfile: fileURLToPath(new URL('../../nbcomp/display/explorer.js', import.meta.url)),
  bundle: true,
  minify: true,
  format: 'iife',
  globalName: 'nbcomp',
  target: 'es2020',
  charset: 'utf8',
  legalComments: 'none'
});
