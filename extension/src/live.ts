/**
 * Which compilations on show are out of date, as their kernels say, by the ids of their reports.
 * What a kernel says is later than what a notebook holds. Knows what shows it by its elements, held
 * weakly: an output may be taken away at any time. Must not know how kernels are asked.
 */

type Reasons = readonly string[];
/** Shows why a report is out of date (empty: it is not); must hold no element itself. */
type Show = (node: HTMLElement, reasons: Reasons) => void;

interface Follower {
  readonly node: WeakRef<HTMLElement>;
  readonly show: Show;
}

const said = new Map<string, Reasons>();
const followers = new Map<string, Follower[]>();

/** Show in an element why a report is out of date, now and whenever its kernel says so. */
export function follow(node: HTMLElement, id: string, saved: Reasons, show: Show): void {
  show(node, said.get(id) ?? saved);
  if (id) {
    const others = (followers.get(id) ?? []).filter(follower => follower.node.deref());
    followers.set(id, [...others, { node: new WeakRef(node), show }]);
  }
}

/** A kernel says, of each of its reports, why it is out of date. Anything else is ignored. */
export function tell(state: unknown): void {
  for (const [id, reasons] of Object.entries((state ?? {}) as Record<string, unknown>)) {
    if (Array.isArray(reasons) && reasons.every(reason => typeof reason === 'string')) {
      said.set(id, reasons);
      for (const { node, show } of followers.get(id) ?? []) {
        const element = node.deref();
        if (element) {
          show(element, reasons);
        }
      }
    }
  }
}
