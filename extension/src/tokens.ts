/**
 * Colouring code: a line is cut into pieces by small regular expressions, one per notation. Pieces
 * that have hover help carry its key. Knows notations; it must not know elements.
 */

export type Language = 'python' | 'loop' | 'llvm' | 'asm' | 'diff' | 'plain';

/** A piece of a line: where, its CSS classes, and the key of its help ('' for none). */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly kind: string;
  readonly help?: string;
}

/** A line cut at every start and end of its spans. */
export interface Piece {
  readonly text: string;
  readonly kinds: readonly string[];
  readonly help: string;
}

const PYTHON =
  'and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|' +
  'import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield';
const LOOP = 'kernel|for|parallel|vector|unroll|lanes|in|if|else|while|do|leave|exit|poll|prefetch|alloc|call';
const NUMBER = String.raw`[-+]?\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b`;

/* The groups' names are the classes of the pieces: c comment, s string, k keyword, t type, l label,
   v value or register, n number, f a word that may have help. */
const NOTATIONS: Record<Language, RegExp> = {
  python: new RegExp(
    String.raw`(?<c>#.*)|(?<s>"[^"]*"|'[^']*')|(?<k>\b(?:${PYTHON})\b)|(?<n>${NUMBER})|(?<f>[A-Za-z_]\w*)|(?<o>@)`,
    'g'
  ),
  loop: new RegExp(
    String.raw`(?<c>#.*|//(?! (?:streaming|contract)\b).*)|(?<k>\b(?:${LOOP})\b)|(?<t>\b[fiu](?:8|16|32|64)\b|\bbool\b)|(?<n>${NUMBER})|(?<f>[A-Za-z_]\w*)`,
    'g'
  ),
  llvm: new RegExp(
    String.raw`(?<c>;.*)|(?<s>"[^"]*")|(?<l>^[\w.$-]+:)|(?<v>[%@][\w.$-]+)|(?<t>\b(?:i\d+|half|float|double|bfloat|ptr|void|label|x)\b)|(?<n>${NUMBER})|(?<f>[a-z][a-z_.]*)`,
    'g'
  ),
  asm: new RegExp(
    String.raw`(?<c>#.*|//.*)|(?<s>"[^"]*")|(?<l>^[\w.$]+:)|(?<v>%[a-z]\w*)|(?<n>\$?${NUMBER})|(?<d>\.[a-z]\w*)|(?<f>\b[a-z][\w.]*)`,
    'g'
  ),
  diff: /(?<c>^@@.*)/g,
  plain: /(?!)/g
};
const HELP: Record<Language, string> = {
  python: 'op', loop: 'loop', llvm: 'llvm', asm: 'asm', diff: '', plain: ''
};

/**
 * The coloured pieces of a line; `known` says whether there is help under a key. Keys begin with
 * `notation`, for assembly languages that are not the usual one.
 */
export function tokens(
  line: string,
  language: Language,
  known: (key: string) => boolean,
  notation: string = HELP[language]
): Span[] {
  const spans: Span[] = [];
  for (const match of line.matchAll(NOTATIONS[language])) {
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0] ?? '';
    const word = match[0];
    const key = helpKey(word, kind, notation, known);
    if (kind !== 'f' || key || language === 'llvm' || language === 'asm') {
      const start = match.index ?? 0;
      spans.push({ start, end: start + word.length, kind: `nbx-t-${kind}`, help: key });
    }
  }
  return spans;
}

function helpKey(
  word: string,
  kind: string,
  notation: string,
  known: (key: string) => boolean
): string {
  if (!notation || !/^[fkotv]$/.test(kind)) {
    return '';
  }
  const key = `${notation}:${kind === 'o' ? 'matmul' : word.replace(/^@/, '')}`;
  return known(key) ? key : '';
}

/** Cut a line at the borders of its spans; where spans overlap a piece has all their kinds. */
export function pieces(line: string, spans: readonly Span[]): Piece[] {
  const inside = spans.filter(span => span.start < span.end && span.start < line.length);
  const ends = inside.flatMap(({ start, end }) => [start, Math.min(end, line.length)]);
  const cuts = [...new Set([0, line.length, ...ends])].sort((a, b) => a - b);
  return cuts.slice(0, -1).map((start, i) => {
    const over = inside.filter(span => span.start <= start && span.end > start);
    return {
      text: line.slice(start, cuts[i + 1]),
      kinds: over.map(span => span.kind).filter(Boolean),
      help: over.map(span => span.help ?? '').find(Boolean) ?? ''
    };
  });
}
