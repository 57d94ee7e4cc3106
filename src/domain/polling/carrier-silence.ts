import { z } from 'zod'
import { notAhead } from '../put-back.ts'

/**
 * The times during which the carrier answered no call. They do not count when a parcel grows stale (DOMAIN 6.1). If they did, an outage of a
 * month would make all parcels stale. A silence lasts from an unanswered poll to the next answered one. Times are epoch milliseconds.
 */
export interface CarrierSilence {
  /** The beginning of the present silence; null: the last poll was answered. */
  readonly sinceMs: number | null
  /** The silences that have ended, the oldest first. */
  readonly past: readonly { readonly fromMs: number; readonly toMs: number }[]
}

export const noSilence: CarrierSilence = { sinceMs: null, past: [] }

/** Shorter silences are not kept. They do not matter, because it takes days until a parcel is stale. */
const LEAST_MS = 3_600_000
const PAST_MAX = 100

/** Returns the silence after a poll that the carrier answered. */
export function afterAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if (sinceMs === null) return silence
  if (atMs - sinceMs < LEAST_MS) return { sinceMs: null, past }
  return { sinceMs: null, past: [...past, { fromMs: sinceMs, toMs: atMs }].slice(-PAST_MAX) }
}

/** Returns the silence after a poll that the carrier did not answer. */
export function afterNoAnswer(silence: CarrierSilence, atMs: number): CarrierSilence {
  return silence.sinceMs === null ? { ...silence, sinceMs: atMs } : silence
}

/** Corrects a silence after the clock was put back: removes the part that is now in the future. */
export function clampSilenceToClock(silence: CarrierSilence, nowMs: number): CarrierSilence {
  const { sinceMs, past } = silence
  if ((sinceMs ?? nowMs) <= nowMs && past.every(({ toMs }) => toMs <= nowMs)) return silence
  return {
    sinceMs: notAhead(sinceMs, nowMs),
    past: past.filter(({ fromMs }) => fromMs < nowMs).map(({ fromMs, toMs }) => ({ fromMs, toMs: notAhead(toMs, nowMs) })),
  }
}

/** Returns how much of the time from `fromMs` to `toMs` was silence. Assumes that a silence that has not ended lasts until `toMs`. */
export function silentMs({ sinceMs, past }: CarrierSilence, fromMs: number, toMs: number): number {
  const all = sinceMs === null ? past : [...past, { fromMs: sinceMs, toMs }]
  return all.reduce((sum, one) => sum + Math.max(0, Math.min(one.toMs, toMs) - Math.max(one.fromMs, fromMs)), 0)
}

const record = z.object({
  sinceMs: z.number().nullable(),
  past: z.array(z.object({ fromMs: z.number(), toMs: z.number() })).max(PAST_MAX),
})

/** Encodes the silences that must survive a restart, without a silence that has just begun. */
export function encodeSilence({ sinceMs, past }: CarrierSilence, nowMs: number): string {
  return JSON.stringify({ sinceMs: sinceMs !== null && nowMs - sinceMs >= LEAST_MS ? sinceMs : null, past })
}

/** Parses stored silences. Null: the text is damaged. */
export function parseSilence(text: string): CarrierSilence | null {
  try {
    return record.parse(JSON.parse(text))
  } catch {
    return null
  }
}
