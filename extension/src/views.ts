/** What a view beside the levels is: which payloads it is for, and how it is made. */

import type { Context } from './context.js';
import type { Payload } from './schema.js';

export interface View {
  readonly name: string;
  readonly title: string;
  /** The sections of a payload's `show` it stands for. */
  readonly sections: readonly string[];
  readonly has: (payload: Payload) => boolean;
  readonly make: (context: Context) => Node;
}
