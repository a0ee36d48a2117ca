/**
 * Asks the kernel of a notebook which of its reports are out of date. The kernel opens a comm when
 * it has a report; a page that is loaded later finds that comm and asks for the present state.
 * Knows Jupyter's objects by the little that is used of them.
 */

import { tell } from './live.js';

const TARGET = 'nbcomp'; // nbcomp/magics/marks.py has the same

interface Comm {
  onMsg: (message: { content: { data: Record<string, unknown> } }) => void;
  send(data: Record<string, never>): unknown;
}

interface Kernel {
  readonly handleComms?: boolean;
  registerCommTarget(name: string, opened: (comm: Comm) => void): void;
  requestCommInfo(content: { target_name: string }): Promise<{ content: { comms?: Record<string, unknown> } }>;
  hasComm?(id: string): boolean;
  createComm(target: string, id: string): Comm;
}

/** What a notebook, or a console, has. */
export interface SessionContext {
  readonly session: { readonly kernel: Kernel | null } | null;
  readonly kernelChanged: { connect(slot: () => void): unknown };
}

const contexts = new WeakSet<SessionContext>();
const kernels = new WeakSet<Kernel>();

/** Listen to the kernel of a notebook, and to those that come after it. */
export function listen(context: SessionContext): void {
  if (contexts.has(context)) {
    return;
  }
  contexts.add(context);
  const hear = (): void => {
    const kernel = context.session?.kernel;
    if (kernel && !kernels.has(kernel)) {
      kernels.add(kernel);
      connect(kernel).catch(error => console.warn('nbcomp: no news from the kernel', error));
    }
  };
  context.kernelChanged.connect(hear);
  hear();
}

async function connect(kernel: Kernel): Promise<void> {
  if (kernel.handleComms === false) {
    return; // another connection to it has them
  }
  const attach = (comm: Comm): void => {
    comm.onMsg = ({ content }) => tell(content.data['stale']);
  };
  kernel.registerCommTarget(TARGET, attach);
  const { content } = await kernel.requestCommInfo({ target_name: TARGET });
  for (const id of Object.keys(content.comms ?? {})) {
    if (!kernel.hasComm?.(id)) {
      const comm = kernel.createComm(TARGET, id);
      attach(comm);
      comm.send({});
    }
  }
}
