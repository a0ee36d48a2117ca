/**
 * Reading what arrives: a payload is checked against the schema before anything is made of it, so
 * that the rest can rely on its types. A broken section is left out and named; without a headline
 * there is nothing to show. Knows the schema; it must not know how things look.
 */

import { SCHEMA } from './schema.js';
import type { Payload } from './schema.js';

export const MIME = 'application/vnd.nbcomp.compilation+json';
export const VERSION: number = SCHEMA.properties.version.maximum;

/** A payload that can be relied on, and what was wrong with the rest. */
export type Reading =
  | { payload: Payload; problems: string[] }
  | { payload: null; problems: string[] };

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

const DEFINITIONS: Readonly<Record<string, Schema>> = SCHEMA.$defs;

export function read(data: unknown): Reading {
  if (kind(data) !== 'object') {
    return { payload: null, problems: ['the data of this output is not a compilation'] };
  }
  const sections = { ...(data as Record<string, unknown>) };
  const version = sections['version'];
  if (typeof version === 'number' && version > VERSION) {
    const words = `made by a newer nbcomp (format ${version}; this explorer reads ${VERSION})`;
    return { payload: null, problems: [`This output was ${words}: update nbcomp to explore it.`] };
  }
  const problems: string[] = [];
  for (const [name, schema] of Object.entries<Schema>(SCHEMA.properties)) {
    const problem = name in sections ? complaint(sections[name], schema, name) : '';
    if (problem) {
      problems.push(problem);
      delete sections[name];
    }
  }
  const missing = SCHEMA.required.filter(name => !(name in sections));
  if (missing.length) {
    return { payload: null, problems: [...problems, `no ${missing.join(', ')}`] };
  }
  return { payload: sections as unknown as Payload, problems };
}

function kind(value: unknown): string {
  if (value === null) {
    return 'null';
  }
  if (Array.isArray(value)) {
    return 'array';
  }
  return Number.isInteger(value) ? 'integer' : typeof value;
}

/** Where and how a value is not what the schema says; empty when it is. */
export function complaint(value: unknown, schema: Schema, path: string): string {
  if (schema.$ref) {
    return complaint(value, DEFINITIONS[schema.$ref.split('/').pop() ?? ''] ?? {}, path);
  }
  if (schema.enum) {
    return schema.enum.includes(value) ? '' : `${path} is none of ${schema.enum.join(', ')}`;
  }
  if (schema.oneOf) {
    return schema.oneOf.some(s => !complaint(value, s, path)) ? '' : `${path} is of no known form`;
  }
  const wrong = wrongType(value, schema) || outside(value, schema);
  if (wrong) {
    return `${path} ${wrong}`;
  }
  return Array.isArray(value) ? inArray(value, schema, path) : inObject(value, schema, path);
}

function wrongType(value: unknown, schema: Schema): string {
  const allowed = schema.type === undefined ? [] : [schema.type].flat();
  const found = kind(value);
  const fits = allowed.some(name => name === found || (name === 'number' && found === 'integer'));
  return fits || !allowed.length ? '' : `is ${found} instead of ${allowed.join(' or ')}`;
}

function outside(value: unknown, schema: Schema): string {
  const size = Array.isArray(value) ? value.length : NaN;
  const number = typeof value === 'number' ? value : NaN;
  const low = number < (schema.minimum ?? -Infinity) || size < (schema.minItems ?? 0);
  const high = number > (schema.maximum ?? Infinity) || size > (schema.maxItems ?? Infinity);
  return low ? 'is too small' : high ? 'is too large' : '';
}

function inArray(values: unknown[], schema: Schema, path: string): string {
  for (let i = 0; i < values.length; i++) {
    const item = schema.prefixItems?.[i] ?? schema.items;
    const found = item ? complaint(values[i], item, `${path}[${i}]`) : '';
    if (found) {
      return found;
    }
  }
  return '';
}

function inObject(value: unknown, schema: Schema, path: string): string {
  if (kind(value) !== 'object') {
    return '';
  }
  const object = value as Record<string, unknown>;
  const missing = (schema.required ?? []).find(name => !(name in object));
  if (missing) {
    return `${path} has no ${missing}`;
  }
  for (const [name, item] of Object.entries(object)) {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    const found = known ? complaint(item, known, `${path}.${name}`) : '';
    if (found) {
      return found;
    }
  }
  return '';
}
