import type { Counter } from 'prom-client'

/** The first `max` endpoints that exist have one label each. All further endpoints share the label `others`, so that the number of metrics is limited. */
export const ENDPOINT_LABELS = { max: 200, others: 'others' } as const

const OUTCOMES = ['accepted', 'rejected', 'failed'] as const
/** Between two scrapes, the attempts of this many endpoints are counted apart. */
const UNSHOWN_NAMES_MAX = 10_000

/** Keeps attempts until the next scrape: only a scrape knows which endpoints exist, and so which have a label of their own. */
export function createAttempts(counter: Counter<'endpoint' | 'outcome'>) {
  let unshown = new Map<string, Record<(typeof OUTCOMES)[number], number>>()
  let labels: ReadonlySet<string> = new Set()
  return {
    add(name: string, outcome: (typeof OUTCOMES)[number]): void {
      const label = unshown.has(name) || unshown.size < UNSHOWN_NAMES_MAX ? name : ENDPOINT_LABELS.others
      const counts = unshown.get(label) ?? { accepted: 0, rejected: 0, failed: 0 }
      counts[outcome] += 1
      unshown.set(label, counts)
    },
    /** Counts what was kept, and removes the labels of endpoints that are gone. `names`: the labels of the endpoints that exist. */
    show(names: ReadonlySet<string>): void {
      for (const outcome of OUTCOMES) {
        for (const gone of labels) if (!names.has(gone) && gone !== ENDPOINT_LABELS.others) counter.remove(gone, outcome)
        for (const name of names) counter.inc({ endpoint: name, outcome }, 0)
        for (const [name, counts] of unshown) {
          if (counts[outcome] > 0) counter.inc({ endpoint: names.has(name) ? name : ENDPOINT_LABELS.others, outcome }, counts[outcome])
        }
      }
      unshown = new Map()
      labels = names
    },
  }
}
