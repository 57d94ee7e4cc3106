import { z } from 'zod'
import { parseStoredAs } from '../json-body.ts'
import type { PushChannel } from './push-health.ts'
import type { ScanRate, ScanSample } from './scan-rate.ts'

/** The format of stored records. If a record has another format, it is ignored, and the model is learnt again. */
const FORMAT = 1
/** Numbers are rounded to this many significant digits, because more digits would have no meaning. */
const DIGITS = 4
const WEEK_HOURS = 168

/** The facts about pushes that the relay needs after a restart. */
export interface PushRecord {
  readonly channel: PushChannel
  readonly missed: MissedPushes
  /** Whether operators were told that pushes are silent. False again once they were told that pushes are reliable. */
  readonly toldSilent: boolean
  /** Like `toldSilent`, for too many lost pushes. */
  readonly toldLossy: boolean
}

/** How many pushes were missed since `sinceMs` (epoch milliseconds). */
export interface MissedPushes {
  readonly count: number
  readonly sinceMs: number
  readonly lastFoundAtMs: number | null
}

const hours = z.array(z.number().nonnegative()).length(WEEK_HOURS)
const scanRateRecord = z.object({
  format: z.literal(FORMAT),
  asOfMs: z.number(),
  kinds: z.record(z.string(), z.object({ scans: hours, hours })),
  places: z.record(z.string(), z.number().nonnegative()),
})
const count = z.number().nonnegative()
const pushRecord = z.object({
  format: z.literal(FORMAT),
  channel: z.object({
    health: z.enum(['unknown', 'healthy', 'lossy', 'silent']),
    pushed: count,
    missed: count,
    missedSincePush: count,
    silence: z.object({ sinceMs: z.number(), noticedAtMs: z.number(), found: count, loss: count }).nullable().default(null),
    lastSilence: z.object({ fromMs: z.number(), toMs: z.number() }).nullable().default(null),
    trial: z.object({ sinceMs: z.number(), polledAtMs: z.number().nullable(), pushes: count }).nullable().default(null),
    newest: z.string().default(''),
    misreadAtMs: z.number().nullable().default(null),
    lastPushAtMs: z.number().nullable(),
    evidenceFromMs: z.number().nullable(),
    byHour: z.array(count).length(24),
    days: count,
    dayOf: count,
  }),
  missed: z.object({ count, sinceMs: z.number(), lastFoundAtMs: z.number().nullable() }),
  toldSilent: z.boolean(),
  toldLossy: z.boolean().default(false),
})

export function encodeScanRate(scanRate: ScanRate): string {
  const rounded = (_name: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(DIGITS)) : value
  return JSON.stringify({ format: FORMAT, ...scanRate }, rounded)
}

/** Null: the text is damaged or has another format. */
export function parseScanRate(text: string): ScanRate | null {
  const { asOfMs, kinds, places } = parseStoredAs(scanRateRecord, text) ?? {}
  return asOfMs === undefined || kinds === undefined || places === undefined ? null : { asOfMs, kinds, places }
}

export function encodePushRecord({ channel, ...record }: PushRecord): string {
  const evidenceFromMs = Number.isFinite(channel.evidenceFromMs) ? channel.evidenceFromMs : null
  return JSON.stringify({ format: FORMAT, channel: { ...channel, evidenceFromMs }, ...record })
}

/** Null: the text is damaged or has another format. */
export function parsePushRecord(text: string): PushRecord | null {
  const record = parseStoredAs(pushRecord, text)
  if (record === null) return null
  const { channel, missed, toldSilent, toldLossy } = record
  return { channel: { ...channel, evidenceFromMs: channel.evidenceFromMs ?? Number.NEGATIVE_INFINITY }, missed, toldSilent, toldLossy }
}

/**
 * Returns the push channel at the start of the relay. The time before the start is no evidence of lost pushes, because a relay that is down
 * receives none. If pushes were silent, they stay silent until a push arrives.
 */
export function resumeChannel(channel: PushChannel, nowMs: number): PushChannel {
  if (channel.health === 'silent' || channel.lastPushAtMs === null) return channel
  const trial = channel.trial === null ? null : { ...channel.trial, sinceMs: nowMs, polledAtMs: null }
  return { ...channel, trial, lastPushAtMs: nowMs, missedSincePush: 0, evidenceFromMs: nowMs }
}

/** A replica's observations of pushes and polls since its last lesson. The replica that polls learns from them. */
export interface Lesson {
  readonly samples: readonly ScanSample[]
  /** The pushes that brought news; null: no such push came. */
  readonly pushes: Arrivals | null
  /** The pushes that went into quarantine because they were not understood; null: no such push came. */
  readonly misread: Arrivals | null
  /** The event times of the entries that a poll reported before any push did, epoch milliseconds. */
  readonly foundByPoll: readonly number[]
}

/** How many pushes came, and when the last of them came, epoch milliseconds. */
interface Arrivals {
  readonly count: number
  readonly lastAtMs: number
}

const arrivals = z.object({ count: z.number(), lastAtMs: z.number() }).nullable()
const lesson = z.object({
  samples: z.array(
    z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal('wait'),
        status: z.string(),
        entryCount: z.number(),
        fromMs: z.number(),
        toMs: z.number(),
        scanned: z.boolean(),
      }),
      z.object({ kind: z.literal('place'), status: z.string(), entryCount: z.number() }),
    ]),
  ),
  pushes: arrivals,
  misread: arrivals.default(null),
  foundByPoll: z.array(z.number()),
}) satisfies z.ZodType<Lesson>

export function encodeLesson(taught: Lesson): string {
  return JSON.stringify(taught)
}

/** Parses a lesson. Null: the text is damaged, or another version of the relay wrote it. */
export function parseLesson(text: string): Lesson | null {
  return parseStoredAs(lesson, text)
}
