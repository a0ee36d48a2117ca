/** Numbers as people read them. Knows nothing else. */

/** Three significant digits, without an exponent. */
export function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** A duration with its unit; a dash when it was not measured. */
export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) {
    return '–';
  }
  for (const [unit, scale] of [['s', 1], ['ms', 1e-3], ['µs', 1e-6]] as const) {
    if (value >= 0.9995 * scale) {
      return `${digits(value / scale)} ${unit}`;
    }
  }
  return `${digits(value / 1e-9)} ns`;
}

/** A count with a prefix: 137 G, 4.20 M. */
export function si(value: number | null | undefined, unit = ''): string {
  if (value === null || value === undefined) {
    return '–';
  }
  for (const [prefix, scale] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (Math.abs(value) >= 0.9995 * scale) {
      return `${digits(value / scale)} ${prefix}${unit}`.trim();
    }
  }
  return `${Number.isInteger(value) ? value : digits(value)} ${unit}`.trim();
}

/** Memory, in powers of 1024. */
export function bytes(value: number): string {
  for (const [unit, scale] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]] as const) {
    if (value >= scale) {
      return `${digits(value / scale)} ${unit}`;
    }
  }
  return `${value} B`;
}

/** A share as a whole percentage; what is more than nothing is never "0 %". */
export function percent(share: number): string {
  return share > 0 && share < 0.005 ? '<1 %' : `${Math.round(share * 100)} %`;
}

/** "1 line", "2 lines". */
export function count(number: number, what: string): string {
  return `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`;
}
