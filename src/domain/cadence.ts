import type { PushHealth } from './push-health.ts'

/** How often to ask (CONTRACT `poll`); every duration in milliseconds. */
export interface CadencePolicy {
  /** By latest status: the interval between checks. */
  readonly byStatusMs: Readonly<Record<string, number>>
  readonly defaultMs: number
  /** Intervals are multiplied by this while pushes can be relied on. */
  readonly whenPushIsHealthy: number
  /** Checks after delivery, counted from it. */
  readonly tailMs: readonly number[]
  /** Without anything new for this long, a parcel is asked about no more. */
  readonly staleAfterMs: number
}

/** What the next check depends on, and all it depends on. Times are epoch milliseconds. */
export interface CadenceFacts {
  readonly parcelId: number
  /** Of the first entry of the history; null: it has none. */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  /** When it was last asked for by an app, watched or pushed: what revives it. */
  readonly revivedAtMs: number
  /** When the carrier was last asked, with or without success; null: never. */
  readonly checkedAtMs: number | null
  /** Checks that failed since the last that did not. */
  readonly failures: number
  /** Whether the carrier knows none of its identifiers. */
  readonly unpollable: boolean
  readonly pushHealth: PushHealth
}

export type NextCheck =
  | { readonly kind: 'at'; readonly atMs: number }
  | { readonly kind: 'stopped'; readonly reason: 'delivered' | 'stale' | 'unknown' }

const FINISHED = 'DeliverySucceeded'
/** A failed check is tried again after a minute, then two, four ..., never later than its own interval. */
const RETRY_MS = 60_000
/** Intervals differ by up to this part from parcel to parcel, so that parcels that came together do not fall due together. */
const STAGGER = 0.1

/** When to ask the carrier about a parcel again (DOMAIN 6.1). A time in the past is due now. */
export function nextCheck(facts: CadenceFacts, policy: CadencePolicy): NextCheck {
  if (facts.unpollable) return { kind: 'stopped', reason: 'unknown' }
  if (facts.failures > 0 && facts.checkedAtMs !== null) {
    const retryMs = Math.min(RETRY_MS * 2 ** Math.min(facts.failures - 1, 20), intervalMs(facts, policy))
    return { kind: 'at', atMs: facts.checkedAtMs + staggered(retryMs, facts.parcelId) }
  }
  return facts.latest?.status === FINISHED ? closingCheck(facts, facts.latest.atMs, policy) : regularCheck(facts, policy)
}

/**
 * A closing check as soon as delivery is known, the tail, then no more. What a push brought or an app asked for since the last check revives
 * it for one more: news of a delivery can come later than a check that did not show it yet, and people ask about what is delivered for long.
 */
function closingCheck(facts: CadenceFacts, deliveredAtMs: number, policy: CadencePolicy): NextCheck {
  const { checkedAtMs, revivedAtMs, parcelId } = facts
  if (checkedAtMs === null) return { kind: 'at', atMs: deliveredAtMs }
  const closing = [0, ...policy.tailMs].map((afterMs) => deliveredAtMs + staggered(afterMs, parcelId)).filter((atMs) => atMs > checkedAtMs)
  const revival = revivedAtMs > checkedAtMs ? [Math.max(revivedAtMs, checkedAtMs + staggered(intervalMs(facts, policy), parcelId))] : []
  const checks = [...closing, ...revival]
  return checks.length === 0 ? { kind: 'stopped', reason: 'delivered' } : { kind: 'at', atMs: Math.min(...checks) }
}

function regularCheck(facts: CadenceFacts, policy: CadencePolicy): NextCheck {
  const atMs = (facts.checkedAtMs ?? facts.revivedAtMs) + staggered(intervalMs(facts, policy), facts.parcelId)
  const newestMs = Math.max(facts.latest?.atMs ?? Number.NEGATIVE_INFINITY, facts.revivedAtMs)
  if (atMs <= newestMs + policy.staleAfterMs) return { kind: 'at', atMs }
  return { kind: 'stopped', reason: facts.latest === null ? 'unknown' : 'stale' }
}

function intervalMs(facts: CadenceFacts, policy: CadencePolicy): number {
  // The carrier's word is looked up: `constructor` must find nothing.
  const byStatus =
    facts.latest !== null && Object.hasOwn(policy.byStatusMs, facts.latest.status) ? policy.byStatusMs[facts.latest.status] : undefined
  return (byStatus ?? policy.defaultMs) * (facts.pushHealth === 'healthy' ? policy.whenPushIsHealthy : 1)
}

/** The same parcel always gets the same share of the stagger: multiplied by the golden ratio, ids spread evenly over 0..1. */
function staggered(durationMs: number, parcelId: number): number {
  const spread = (parcelId * 0.618_033_988_749_895) % 1
  return Math.round(durationMs * (1 + STAGGER * spread))
}
