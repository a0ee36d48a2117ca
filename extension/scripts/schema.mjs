// Writes src/schema.ts: the types of nbcomp/display/schema.json, so that both sides agree.
// `node scripts/schema.mjs --check` only says whether the file is up to date.
import { readFileSync, writeFileSync } from 'node:fs';

const here = path => new URL(path, import.meta.url);
const schema = JSON.parse(readFileSync(here('../../nbcomp/display/schema.json'), 'utf8'));

const pascal = name => name.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
const scalar = { string: 'string', number: 'number', integer: 'number', boolean: 'boolean', null: 'null' };

function type(node, indent) {
  if (node.$ref) {
    return pascal(node.$ref.split('/').pop());
  }
  if (node.enum) {
    return node.enum.map(value => `'${value}'`).join(' | ');
  }
  if (node.oneOf) {
    return node.oneOf.map(part => type(part, indent)).join(' | ');
  }
  if (Array.isArray(node.type)) {
    return node.type.map(name => scalar[name]).join(' | ');
  }
  if (node.type === 'array') {
    return array(node, indent);
  }
  return node.type === 'object' ? object(node, indent) : scalar[node.type];
}

function array(node, indent) {
  if (node.prefixItems) {
    return `[${node.prefixItems.map(item => type(item, indent)).join(', ')}]`;
  }
  const item = type(node.items, indent);
  if (node.minItems === 2 && node.maxItems === 2) {
    return `[${item}, ${item}]`;
  }
  return /[ |{]/.test(item) ? `(${item})[]` : `${item}[]`;
}

function object(node, indent) {
  if (!node.properties) {
    return `Record<string, ${type(node.additionalProperties, indent)}>`;
  }
  const pad = '  '.repeat(indent + 1);
  const lines = Object.entries(node.properties).map(([name, value]) => {
    const optional = node.required?.includes(name) ? '' : '?';
    const about = value.description ? `${pad}/** ${value.description} */\n` : '';
    return `${about}${pad}${name}${optional}: ${type(value, indent + 1)};\n`;
  });
  return `{\n${lines.join('')}${'  '.repeat(indent)}}`;
}

function declaration(name, node) {
  const about = node.description ? `/** ${node.description} */\n` : '';
  return node.type === 'object'
    ? `${about}export interface ${name} ${object(node, 0)}\n`
    : `${about}export type ${name} = ${type(node, 0)};\n`;
}

/** The schema as the reader needs it: without the words. */
const bare = (key, value) =>
  ['description', 'title', '$id', '$schema'].includes(key) && typeof value === 'string' ? undefined : value;

const text = [
  '// Made by scripts/schema.mjs from nbcomp/display/schema.json; do not edit.\n',
  `export const SCHEMA = ${JSON.stringify(schema, bare)} as const;\n`,
  declaration('Payload', schema),
  ...Object.entries(schema.$defs).map(([name, node]) => declaration(pascal(name), node))
].join('\n');

const file = here('../src/schema.ts');
if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== text) {
    console.error('src/schema.ts is not what schema.json says; run: jlpm schema');
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
