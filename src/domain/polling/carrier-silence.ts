import { z } from 'zod'
import { notAhead } from '../put-back.ts'

/**
 * The times during which the carrier answered no call. A silence lasts from an unanswered poll to the next answered one. It does not count toward
 * the time after which a parcel is stale (DOMAIN 6.1). Otherwise a long outage would make all parcels stale. Times are epoch milliseconds.
 */
export interface CarrierSilence {
  /** Null: the last poll was answered. */
  readonly sinceMs: number | null
  /** Oldest first. */
  readonly past: readonly { readonly fromMs: number; readonly toMs: number }[]
}

export const noSilence: CarrierSilence = { sinceMs: null, past: [] }

/** Shorter silences are not kept: a parcel is stale only after days, so they hardly matter. */
const LEAST_MS = 3_600_000
const PAST_MAX = 100

export function afterAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if (sinceMs === null) return silence
  if (atMs - sinceMs < LEAST_MS) return { sinceMs: null, past }
  return { sinceMs: null, past: [...past, { fromMs: sinceMs, toMs: atMs }].slice(-PAST_MAX) }
}

export function afterNoAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  return silence.sinceMs === null ? { ...silence, sinceMs: atMs } : silence
}

/** Removes the part of a silence that is in the future after the clock was put back. */
export function clampSilenceToClock(silence: CarrierSilence, nowMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if ((sinceMs ?? nowMs) <= nowMs && past.every(({ toMs }) => toMs <= nowMs)) return silence
  return {
    sinceMs: notAhead(sinceMs, nowMs),
    past: past.filter(({ fromMs }) => fromMs < nowMs).map(({ fromMs, toMs }) => ({ fromMs, toMs: notAhead(toMs, nowMs) })),
  }
}

/** Returns how much of the time from `fromMs` to `toMs` was silence. A silence that has not ended counts up to `toMs`. */
export function silentMs({ sinceMs, past }: CarrierSilence, fromMs: number, toMs: number): number {
  const all = sinceMs === null ? past : [...past, { fromMs: sinceMs, toMs }]
  return all.reduce((sum, one) => sum + Math.max(0, Math.min(one.toMs, toMs) - Math.max(one.fromMs, fromMs)), 0)
}

const record = z.object({
  sinceMs: z.number().nullable(),
  past: z.array(z.object({ fromMs: z.number(), toMs: z.number() })).max(PAST_MAX),
})

/** Leaves out a silence that has only just begun. */
export function encodeSilence({ sinceMs, past }: CarrierSilence, nowMs: number): string {
  return JSON.stringify({ sinceMs: sinceMs !== null && nowMs - sinceMs >= LEAST_MS ? sinceMs : null, past })
}

/** Null: the text is damaged. */
export function parseSilence(text: string): CarrierSilence | null {
  try {
    return record.parse(JSON.parse(text))
  } catch {
    return null
  }
}
