import { z } from 'zod'
import { notAhead } from '../put-back.ts'

/**
 * When the carrier answered nobody. That time makes no parcel stale (DOMAIN 6.1): after an outage of a month every parcel would be. It lasts
 * from a poll without an answer to the next poll with one. Times are epoch milliseconds.
 */
export interface CarrierSilence {
  /** Since when nobody has been answered; null: the last poll was. */
  readonly sinceMs: number | null
  /** The silences that are over, the oldest first. */
  readonly past: readonly { readonly fromMs: number; readonly toMs: number }[]
}

export const noSilence: CarrierSilence = { sinceMs: null, past: [] }

/** Shorter ones do not matter beside the days after which a parcel is stale. */
const LEAST_MS = 3_600_000
const PAST_MAX = 100

/** After a poll that the carrier answered. */
export function afterAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if (sinceMs === null) return silence
  if (atMs - sinceMs < LEAST_MS) return { sinceMs: null, past }
  return { sinceMs: null, past: [...past, { fromMs: sinceMs, toMs: atMs }].slice(-PAST_MAX) }
}

/** After a poll without an answer. */
export function afterNoAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  return silence.sinceMs === null ? { ...silence, sinceMs: atMs } : silence
}

/** A silence as of a clock that may have been put back: what lies ahead has not been. */
export function clampSilenceToClock(silence: CarrierSilence, nowMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if ((sinceMs ?? nowMs) <= nowMs && past.every(({ toMs }) => toMs <= nowMs)) return silence
  return {
    sinceMs: notAhead(sinceMs, nowMs),
    past: past.filter(({ fromMs }) => fromMs < nowMs).map(({ fromMs, toMs }) => ({ fromMs, toMs: notAhead(toMs, nowMs) })),
  }
}

/** How much of the time between two moments the carrier answered nobody; a silence that still lasts is taken to go on. */
export function silentMs({ sinceMs, past }: CarrierSilence, fromMs: number, toMs: number): number {
  const all = sinceMs === null ? past : [...past, { fromMs: sinceMs, toMs }]
  return all.reduce((sum, one) => sum + Math.max(0, Math.min(one.toMs, toMs) - Math.max(one.fromMs, fromMs)), 0)
}

const record = z.object({
  sinceMs: z.number().nullable(),
  past: z.array(z.object({ fromMs: z.number(), toMs: z.number() })).max(PAST_MAX),
})

/** What must survive a restart: not a silence that has just begun. */
export function encodeSilence({ sinceMs, past }: CarrierSilence, nowMs: number): string {
  return JSON.stringify({ sinceMs: sinceMs !== null && nowMs - sinceMs >= LEAST_MS ? sinceMs : null, past })
}

/** Null: it is damaged. */
export function parseSilence(text: string): CarrierSilence | null {
  try {
    return record.parse(JSON.parse(text))
  } catch {
    return null
  }
}
