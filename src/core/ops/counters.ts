import type { Counter, Registry } from 'prom-client'
import type { RecordOutcome } from '../domain/history/recording.ts'
import { UNAVAILABLE_REASONS } from '../domain/polling/carrier-answer.ts'
import type { Meter } from '../flow/ports.ts'
import { instrumentsOf } from './instruments.ts'

/** What becomes of a push whose signature is right: it has the label of its key. */
const KEYED_OUTCOMES: Readonly<Record<RecordOutcome['kind'] | 'check' | 'storage_unavailable', true>> = {
  recorded: true,
  duplicate: true,
  quarantined: true,
  expired: true,
  erased: true,
  check: true,
  storage_unavailable: true,
}
/** What becomes of a request to push before any key has matched. */
const KEYLESS_OUTCOMES = ['signature_invalid', 'body_too_large', 'overloaded', 'wrong_path', 'wrong_path_unsigned']

const POLL_OUTCOMES = ['found', 'not_found', ...UNAVAILABLE_REASONS]

const SERVED_RESULTS: Readonly<Record<Parameters<Meter['served']>[0], true>> = {
  hit: true,
  fetched: true,
  stale: true,
  not_found: true,
  unavailable: true,
}

/**
 * Creates the counters. Those that an alert or the dashboard watches exist at 0 before anything is counted: to Prometheus, a counter that appears
 * with the value 1 has not risen.
 */
export function createCounters(registry: Registry) {
  const { counter, histogram } = instrumentsOf(registry)
  const received = counter('relay_pushes_received_total', 'Pushes by outcome and key.', ['outcome', 'key'])
  const erased = counter('relay_parcels_erased_total', 'Parcels that operators have erased.')
  const explained = counter(
    'relay_refusals_explained_total',
    'Refused pushes that were examined (at most one a second), by cause; one may have several.',
    ['cause'],
  )
  const batch = histogram('relay_commit_batch_size', 'Observations in a commit.', [1, 2, 4, 8, 16, 32, 64, 128, 256])
  const commit = histogram(
    'relay_commit_seconds',
    'Duration of a transaction, commit included.',
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  )
  const polls = counter('relay_polls_total', 'Polls of the carrier by outcome.', ['outcome'])
  const missed = counter('relay_missed_pushes_total', 'Entries that a poll found, and that no push brought in time.')
  const missedDelay = histogram(
    'relay_missed_push_delay_seconds',
    'Time from an entry that no push brought in time to the poll that found it.',
    [60, 300, 900, 3600, 14_400, 86_400],
  )
  const attempted = counter('relay_delivery_attempts_total', 'Delivery attempts by endpoint and outcome.', ['endpoint', 'outcome'])
  const attemptTime = histogram('relay_delivery_attempt_seconds', 'Duration of delivery attempts.', [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15])
  const merged = counter('relay_merged_total', 'Observations by their effect on the history.', ['result'])
  const rebuilt = counter('relay_rebuilt_parcels_total', 'Parcels that rebuilds have compared with their stored raw bytes, by result.', [
    'result',
  ])
  const served = counter('relay_served_total', 'Answers to apps by source.', ['result'])
  for (const outcome of KEYLESS_OUTCOMES) received.inc({ outcome, key: 'none' }, 0)
  for (const outcome of POLL_OUTCOMES) polls.inc({ outcome }, 0)
  for (const result of Object.keys(SERVED_RESULTS)) served.inc({ result }, 0)
  return { received, explained, erased, batch, commit, polls, missed, missedDelay, attempted, attemptTime, merged, rebuilt, served }
}

/** Makes the counters of pushes exist for this many keys. */
export function showKeys(received: Counter<'outcome' | 'key'>, count: number): void {
  for (let key = 0; key < count; key++) for (const outcome of Object.keys(KEYED_OUTCOMES)) received.inc({ outcome, key: String(key) }, 0)
}

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
