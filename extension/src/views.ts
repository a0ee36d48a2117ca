/** The views beside the levels, in the order of their tabs. */

import type { Context } from './context.js';
import type { Payload } from './schema.js';

export interface View {
  readonly name: string;
  readonly title: string;
  /** The sections of `show` it stands for. */
  readonly sections: readonly string[];
  readonly has: (payload: Payload) => boolean;
  readonly make: (context: Context) => Node;
}

export const VIEWS: readonly View[] = [];
