// Made by scripts/schema.mjs from nbcomp/display/schema.json; do not edit.

export const SCHEMA = {"type":"object","required":["version","name","title","sentences"],"properties":{"version":{"type":"integer","minimum":1,"maximum":2},"name":{"type":"string"},"status":{"enum":["faster","same","slower","wrong","numpy","untimed"]},"title":{"type":"string"},"sentences":{"type":"array","items":{"type":"string"}},"show":{"type":"array","items":{"type":"string"}},"source":{"$ref":"#/$defs/source"},"places":{"type":"array","items":{"$ref":"#/$defs/place"}},"constructs":{"type":"array","items":{"type":"string"}},"graphs":{"type":"object","properties":{"before":{"$ref":"#/$defs/drawing"},"after":{"$ref":"#/$defs/drawing"}}},"kernels":{"type":"array","items":{"$ref":"#/$defs/kernel"}},"cpus":{"type":"array","items":{"$ref":"#/$defs/cpu_row"}},"passes":{"type":"array","items":{"$ref":"#/$defs/pass"}},"stages":{"type":"array","items":{"$ref":"#/$defs/stage"}},"ablation":{"type":"array","items":{"$ref":"#/$defs/ablated"}},"numbers":{"$ref":"#/$defs/numbers"},"provenance":{"type":"array","items":{"$ref":"#/$defs/provenance_row"}},"history":{"$ref":"#/$defs/history"},"stale":{"type":"array","items":{"type":"string"}},"id":{"type":"string"},"remarks":{"type":"array","items":{"$ref":"#/$defs/remark"}},"checks":{"type":"array","items":{"$ref":"#/$defs/check"}},"speed":{"type":"array","items":{"$ref":"#/$defs/speed"}},"speed_notes":{"type":"array","items":{"type":"string"}},"help":{"type":"object","additionalProperties":{"$ref":"#/$defs/help"}}},"$defs":{"place":{"type":"object","required":["line"],"properties":{"line":{"type":"integer","minimum":0},"column":{"type":"integer","minimum":0},"end_line":{"type":"integer","minimum":0},"end_column":{"type":"integer","minimum":0},"function":{"type":"string"}}},"mark":{"type":"object","required":["line","mark","topic","reason"],"properties":{"line":{"type":"integer","minimum":0},"mark":{"enum":["applied","missed","analysis"]},"topic":{"type":"string"},"reason":{"type":"string"},"hint":{"type":"string"}}},"source":{"type":"object","required":["first","lines"],"properties":{"file":{"type":"string"},"first":{"type":"integer","minimum":0},"lines":{"type":"array","items":{"type":"string"}},"marks":{"type":"array","items":{"$ref":"#/$defs/mark"}},"cost":{"type":"array","items":{"type":["number","null"]}}}},"point":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2},"box":{"type":"object","required":["kind","title","width","height"],"properties":{"kind":{"enum":["op","library","input","constant","output","group"]},"title":{"type":"string"},"detail":{"type":"string"},"tip":{"type":"string"},"width":{"type":"number"},"height":{"type":"number"},"x":{"type":"number"},"y":{"type":"number"},"group":{"type":"integer"},"line":{"type":"integer","minimum":0},"places":{"type":"array","items":{"type":"integer","minimum":0}}}},"frame":{"type":"object","required":["title","width","height"],"properties":{"title":{"type":"string"},"kind":{"type":"string"},"group":{"type":"integer"},"width":{"type":"number"},"height":{"type":"number"},"x":{"type":"number"},"y":{"type":"number"}}},"wire":{"type":"object","required":["points"],"properties":{"points":{"type":"array","items":{"$ref":"#/$defs/point"}},"label":{"type":"string"},"label_at":{"$ref":"#/$defs/point"},"arrow":{"type":"boolean"}}},"drawing":{"type":"object","required":["width","height","boxes"],"properties":{"width":{"type":"number"},"height":{"type":"number"},"summary":{"type":"string"},"boxes":{"type":"array","items":{"$ref":"#/$defs/box"}},"frames":{"type":"array","items":{"$ref":"#/$defs/frame"}},"wires":{"type":"array","items":{"$ref":"#/$defs/wire"}}}},"text":{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"cut":{"type":"boolean"},"total":{"type":"integer","minimum":0},"notation":{"type":"string"},"places":{"type":"array","items":{"oneOf":[{"type":"integer","minimum":-1},{"type":"array","items":{"type":"integer","minimum":0}}]}},"constructs":{"type":"array","items":{"type":"integer","minimum":-1}}}},"cpu_row":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"seconds":{"type":["number","null"]},"low":{"type":["number","null"]},"high":{"type":["number","null"]},"note":{"type":"string"},"vector_bits":{"type":"integer"},"in_loops":{"type":"integer","minimum":0}}},"cpu":{"type":"object","required":["name","text"],"properties":{"name":{"type":"string"},"note":{"type":"string"},"text":{"$ref":"#/$defs/text"}}},"kernel":{"type":"object","required":["name","kind","number","texts"],"properties":{"name":{"type":"string"},"kind":{"type":"string"},"number":{"type":"integer","minimum":0},"operators":{"type":"string"},"lines":{"type":"string"},"calls":{"type":"integer","minimum":1},"texts":{"type":"object","properties":{"loop":{"$ref":"#/$defs/text"},"llvm":{"$ref":"#/$defs/text"},"asm":{"$ref":"#/$defs/text"}}},"facts":{"type":"array","items":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":2}},"cpus":{"type":"array","items":{"$ref":"#/$defs/cpu"}}}},"measured":{"type":"object","required":["seconds"],"properties":{"seconds":{"type":["number","null"]},"low":{"type":["number","null"]},"high":{"type":["number","null"]},"same":{"type":"boolean"},"note":{"type":"string"}}},"pass":{"type":"object","required":["name","level"],"properties":{"name":{"type":"string"},"level":{"type":"string"},"description":{"type":"string"},"seconds":{"type":["number","null"]},"added":{"type":"integer","minimum":0},"removed":{"type":"integer","minimum":0},"diffs":{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"minItems":2,"maxItems":2}},"measured":{"$ref":"#/$defs/measured"}}},"stage":{"type":"object","required":["name","seconds"],"properties":{"name":{"type":"string"},"seconds":{"type":["number","null"]}}},"ablated":{"type":"object","required":["name","ratio"],"properties":{"name":{"type":"string"},"description":{"type":"string"},"seconds":{"type":["number","null"]},"low":{"type":["number","null"]},"high":{"type":["number","null"]},"ratio":{"type":["number","null"]},"note":{"type":"string"}}},"machine":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"threads":{"type":"integer","minimum":0},"peak_flops":{"type":"array","items":{"type":"object","required":["threads","dtype","value"],"properties":{"threads":{"type":"integer","minimum":0},"dtype":{"type":"string"},"value":{"type":["number","null"]}}}},"bandwidth":{"type":"array","items":{"type":"object","required":["threads","level","value"],"properties":{"threads":{"type":"integer","minimum":0},"level":{"type":"string"},"value":{"type":["number","null"]}}}}}},"kernel_numbers":{"type":"object","required":["kernel"],"properties":{"kernel":{"type":"string"},"seconds":{"type":["number","null"]},"low":{"type":["number","null"]},"high":{"type":["number","null"]},"operations":{"type":["number","null"]},"bytes":{"type":["number","null"]},"intensity":{"type":["number","null"]},"flops_per_second":{"type":["number","null"]},"bound":{"type":"string"},"of_limit":{"type":["number","null"]}}},"buffer":{"type":"object","required":["name","bytes","first","last"],"properties":{"name":{"type":"string"},"bytes":{"type":"integer","minimum":0},"offset":{"type":["integer","null"]},"first":{"type":"integer","minimum":0},"last":{"type":"integer","minimum":0},"role":{"type":"string"}}},"memory":{"type":"object","required":["buffers","steps"],"properties":{"peak":{"type":"integer","minimum":0},"arena":{"type":"integer","minimum":0},"buffers":{"type":"array","items":{"$ref":"#/$defs/buffer"}},"steps":{"type":"array","items":{"type":"string"}}}},"numbers":{"type":"object","properties":{"machine":{"$ref":"#/$defs/machine"},"kernels":{"type":"array","items":{"$ref":"#/$defs/kernel_numbers"}},"memory":{"$ref":"#/$defs/memory"}}},"provenance_row":{"type":"object","required":["kernel","mapped","in_loop"],"properties":{"kernel":{"type":"string"},"mapped":{"type":"integer","minimum":0},"in_loop":{"type":"integer","minimum":0}}},"history":{"type":"object","properties":{"when":{"type":"string"},"title":{"type":"string"},"changes":{"type":"array","items":{"type":"string"}},"diffs":{"type":"array","items":{"type":"object","required":["lines"],"properties":{"level":{"type":"string"},"kernel":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}}}},"seconds":{"type":["number","null"]},"previous_seconds":{"type":["number","null"]}}},"remark":{"type":"object","required":["topic","reason"],"properties":{"line":{"type":"integer","minimum":0},"source":{"type":"string"},"done":{"type":"boolean"},"topic":{"type":"string"},"reason":{"type":"string"},"hint":{"type":"string"},"mark":{"enum":["applied","missed","analysis"]}}},"check":{"type":"object","required":["level"],"properties":{"level":{"type":"string"},"ulp":{"type":["number","null"]},"problem":{"type":"string"},"words":{"type":"string"}}},"speed":{"type":"object","required":["size","ratio"],"properties":{"size":{"type":"integer","minimum":0},"ours":{"type":["number","null"]},"theirs":{"type":["number","null"]},"ratio":{"type":["number","null"]},"low":{"type":["number","null"]},"high":{"type":["number","null"]},"ulp":{"type":["number","null"]},"first_call":{"type":["number","null"]},"verdict":{"type":"string"}}},"help":{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"source":{"type":"string"}}}}} as const;

/** One compilation, as the explorer shows it. A reader ignores keys it does not know; a change of meaning raises `version`, and a reader that is older shows a notice and the plain form. NaN and infinities are null. Every section but the headline is optional. */
export interface Payload {
  /** 2; 1 had no places, marks, numbers or help */
  version: number;
  /** the function */
  name: string;
  status?: 'faster' | 'same' | 'slower' | 'wrong' | 'numpy' | 'untimed';
  /** the headline */
  title: string;
  /** the facts under the headline */
  sentences: string[];
  /** the sections that were asked for */
  show?: string[];
  source?: Source;
  places?: Place[];
  /** what the compiler added: loop control, tail, prologue, spill, ... */
  constructs?: string[];
  graphs?: {
    before?: Drawing;
    after?: Drawing;
  };
  kernels?: Kernel[];
  /** the whole program, on each processor */
  cpus?: CpuRow[];
  passes?: Pass[];
  /** compile time */
  stages?: Stage[];
  /** each optimisation off in turn */
  ablation?: Ablated[];
  numbers?: Numbers;
  provenance?: ProvenanceRow[];
  history?: History;
  /** what changed since, a sentence each */
  stale?: string[];
  /** the report's, by which a kernel says that it is stale; absent: none */
  id?: string;
  remarks?: Remark[];
  checks?: Check[];
  speed?: Speed[];
  speed_notes?: string[];
  /** hover help; keys like op:matmul, loop:parallel, llvm:fmul, asm:vfmadd231ps, aarch64:fmla, construct:tail, kind:fma */
  help?: Record<string, Help>;
}

/** The span of one expression of the user's source. */
export interface Place {
  /** first line within the cell or file, from 1 */
  line: number;
  /** first column, from 0, in UTF-16 units of the line as shown */
  column?: number;
  /** last line; 0: the same */
  end_line?: number;
  /** column after the last character; 0: the end of the line */
  end_column?: number;
  /** the function it is in */
  function?: string;
}

/** One decision of the compiler, beside the user's line. */
export interface Mark {
  /** line within the cell */
  line: number;
  mark: 'applied' | 'missed' | 'analysis';
  /** fusion, vectorize, parallel, library, memory, ... */
  topic: string;
  /** why, in the user's names */
  reason: string;
  /** the change that would help; empty: none */
  hint?: string;
}

/** The user's own lines. */
export interface Source {
  file?: string;
  /** number, within the cell or file, of lines[0] */
  first: number;
  lines: string[];
  marks?: Mark[];
  /** one item per line, or none */
  cost?: (number | null)[];
}

export type Point = [number, number];

/** A node of a graph. Absent numbers are 0, absent texts empty. */
export interface Box {
  kind: 'op' | 'library' | 'input' | 'constant' | 'output' | 'group';
  title: string;
  detail?: string;
  tip?: string;
  width: number;
  height: number;
  x?: number;
  y?: number;
  /** index of the kernel; absent or -1: none */
  group?: number;
  /** of the user's source; absent or 0: none */
  line?: number;
  /** indices into `places` */
  places?: number[];
}

/** The box around a kernel's nodes. */
export interface Frame {
  title: string;
  kind?: string;
  group?: number;
  width: number;
  height: number;
  x?: number;
  y?: number;
}

/** A value on its way: a polyline, vertical at its ends. */
export interface Wire {
  points: Point[];
  label?: string;
  label_at?: Point;
  arrow?: boolean;
}

export interface Drawing {
  width: number;
  height: number;
  /** what the picture shows, in words */
  summary?: string;
  boxes: Box[];
  frames?: Frame[];
  wires?: Wire[];
}

/** A kernel at one level, line by line. */
export interface Text {
  text: string;
  /** whether lines were left out at the end */
  cut?: boolean;
  /** lines of the whole text */
  total?: number;
  /** what the keys of its words' help begin with; absent: the level, loop, llvm or asm */
  notation?: string;
  /** per line an index into `places`, several, or -1: none */
  places?: (number | number[])[];
  /** per line an index into `constructs`, or -1: none */
  constructs?: number[];
}

/** The whole program compiled for one processor. */
export interface CpuRow {
  name: string;
  /** seconds of a call; null: not run here */
  seconds?: number | null;
  /** seconds; null: not measured */
  low?: number | null;
  /** seconds; null: not measured */
  high?: number | null;
  note?: string;
  /** of the widest vectors in loops; 0: none, -1: as wide as the machine has them */
  vector_bits?: number;
  /** machine instructions in loops */
  in_loops?: number;
}

/** The same kernel compiled for one processor. */
export interface Cpu {
  name: string;
  note?: string;
  text: Text;
}

export interface Kernel {
  name: string;
  kind: string;
  /** index in the program, the `group` of boxes and frames */
  number: number;
  operators?: string;
  /** the user's lines, in words */
  lines?: string;
  /** how often it is called in a call of the program; absent: once */
  calls?: number;
  texts: {
    loop?: Text;
    llvm?: Text;
    asm?: Text;
  };
  /** names and values: instruction mix, vector width, ... */
  facts?: ([string, string])[];
  cpus?: Cpu[];
}

/** The program's run time after a pass, with quartiles. */
export interface Measured {
  /** seconds; null: not measured */
  seconds: number | null;
  /** seconds; null: not measured */
  low?: number | null;
  /** seconds; null: not measured */
  high?: number | null;
  /** whether the answer is the one without the pass */
  same?: boolean;
  note?: string;
}

export interface Pass {
  name: string;
  level: string;
  description?: string;
  /** seconds; null: not measured */
  seconds?: number | null;
  added?: number;
  removed?: number;
  diffs?: ([string, string[]])[];
  measured?: Measured;
}

export interface Stage {
  name: string;
  /** seconds; null: not measured */
  seconds: number | null;
}

export interface Ablated {
  /** the optimisation that was off */
  name: string;
  /** what it does */
  description?: string;
  /** seconds; null: not measured */
  seconds?: number | null;
  /** seconds; null: not measured */
  low?: number | null;
  /** seconds; null: not measured */
  high?: number | null;
  /** seconds without it / seconds of the whole */
  ratio: number | null;
  note?: string;
}

export interface Machine {
  name: string;
  threads?: number;
  peak_flops?: ({
    threads: number;
    dtype: string;
    /** operations per second */
    value: number | null;
  })[];
  bandwidth?: ({
    threads: number;
    /** L1, L2, L3 or memory */
    level: string;
    /** bytes per second */
    value: number | null;
  })[];
}

export interface KernelNumbers {
  /** its name */
  kernel: string;
  /** seconds; null: not measured */
  seconds?: number | null;
  /** seconds; null: not measured */
  low?: number | null;
  /** seconds; null: not measured */
  high?: number | null;
  /** arithmetic operations */
  operations?: number | null;
  /** bytes read and written */
  bytes?: number | null;
  /** operations per byte */
  intensity?: number | null;
  /** operations per second */
  flops_per_second?: number | null;
  /** what limits it: compute, memory, ... */
  bound?: string;
  /** share of that limit, 0 to 1 */
  of_limit?: number | null;
}

export interface Buffer {
  name: string;
  bytes: number;
  /** in the arena; null: memory of its own */
  offset?: number | null;
  /** index of the first step that uses it */
  first: number;
  /** index of the last one */
  last: number;
  /** input, output, arena, ... */
  role?: string;
}

export interface Memory {
  /** bytes */
  peak?: number;
  /** bytes */
  arena?: number;
  buffers: Buffer[];
  /** what runs, in order */
  steps: string[];
}

export interface Numbers {
  machine?: Machine;
  kernels?: KernelNumbers[];
  memory?: Memory;
}

export interface ProvenanceRow {
  kernel: string;
  /** those that map to a line or a named construct */
  mapped: number;
  /** instructions in loops */
  in_loop: number;
}

/** This run of the cell against the one before. */
export interface History {
  when?: string;
  title?: string;
  changes?: string[];
  diffs?: ({
    level?: string;
    kernel?: string;
    lines: string[];
  })[];
  /** seconds; null: not measured */
  seconds?: number | null;
  /** seconds; null: not measured, or on other inputs */
  previous_seconds?: number | null;
}

export interface Remark {
  line?: number;
  source?: string;
  done?: boolean;
  topic: string;
  reason: string;
  hint?: string;
  mark?: 'applied' | 'missed' | 'analysis';
}

export interface Check {
  level: string;
  /** left out: it gave no answer */
  ulp?: number | null;
  /** how the answer is wrong; empty: it is right */
  problem?: string;
  /** the outcome, or why it was not run */
  words?: string;
}

/** One batch size: ours against NumPy. */
export interface Speed {
  size: number;
  /** seconds; null: not measured */
  ours?: number | null;
  /** seconds; null: not measured */
  theirs?: number | null;
  ratio: number | null;
  low?: number | null;
  high?: number | null;
  ulp?: number | null;
  /** seconds; null: not measured */
  first_call?: number | null;
  verdict?: string;
}

export interface Help {
  /** one sentence */
  text: string;
  /** where it is defined */
  source?: string;
}
