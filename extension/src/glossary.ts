/**
 * What the explorer's own words mean, for whoever points at them: heads of tables, limits, stages.
 * Words of the program are explained by the payload's help. Knows nothing else.
 */

const MEANINGS: Readonly<Record<string, string>> = {
  kernel: 'one piece of machine code: a loop nest over the buffers it is called with',
  operations: 'arithmetic of all calls: one for each +, −, ×, ÷, √, comparison and the like, two for a multiply-add of a matrix product, as many as its vector code has for an elementary function',
  memory: 'bytes that must move: each element of a buffer once, however often it is used',
  'op/byte': 'arithmetic intensity: operations for each byte that must move',
  rate: 'operations per second',
  'limited by': 'what lets it run no faster on this machine (the multiply-add peak, a level of memory, or the starting of threads), and how near that it is',
  'speed-up': "NumPy's time over that of the compiled function: medians",
  quartiles: 'half of the measurements lie between these',
  batch: 'rows of the first argument',
  ulp: 'units in the last place: steps between neighbouring floating-point numbers',
  compute: 'the multiply-add peak of the cores it runs on',
  overhead: 'the starting of its steps, and of threads',
  L1: 'the first cache, of each core',
  L2: 'the second cache, of each core',
  L3: 'the last cache, which the cores share',
  capture: 'the function runs once on stand-ins for arrays, and becomes a graph',
  'graph passes': 'the graph is simplified, and its operators are put together into kernels',
  lower: 'each kernel becomes loops',
  schedule: 'how the loops run: vectors, cores, blocks',
  'memory plan': 'what lies in memory when, so that places can be used again',
  'code generation': "the loops are written as LLVM IR with vectors",
  LLVM: 'LLVM makes machine code of that; nothing where the same code is known already',
  tune: 'schedules are searched for'
};

/** What a word means; empty if it needs no explanation. */
export function meaning(word: string): string {
  return Object.prototype.hasOwnProperty.call(MEANINGS, word) ? MEANINGS[word]! : '';
}
