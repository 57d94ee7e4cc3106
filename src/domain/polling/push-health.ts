import { notAhead } from '../put-back.ts'

/**
 * How reliable the carrier's pushes are (DOMAIN 6.1).
 *
 * `unknown`: before any push, and until enough verdicts are in. Polls keep their full cadence; no alarm.
 * `healthy`: pushes arrive and few are lost.
 * `lossy`: pushes arrive but too many are lost, or they have only just resumed.
 * `silent`: none arrive although scans happen. Polls keep their full cadence, and operators are alarmed.
 */
export type PushHealth = 'unknown' | 'healthy' | 'lossy' | 'silent'

/** The knowledge about the push channel, small enough to store. Counts fade, so that old verdicts weigh less. */
export interface PushChannel {
  readonly health: PushHealth
  /** Entries that pushes reported, among the latest few hundred or the last day's, whichever are more. */
  readonly pushed: number
  /** Entries that only polls reported, after the grace (DOMAIN 6.6). */
  readonly missed: number
  /** Missed entries that happened after the last push arrived. A silence goes on counting them, because no push contradicts them. */
  readonly missedSincePush: number
  /** The evidence of the silence at the time it was noticed; null: there is none. */
  readonly silence: SilenceEvidence | null
  /** Pushes since the last silence. */
  readonly pushedSinceSilence: number
  readonly lastPushAtMs: number | null
  /** Earlier events are no evidence, because they fell in a silence that is over. */
  readonly evidenceFromMs: number
  /** Pushes by hour of the day (UTC), summed over days and faded; `days` fades in the same way. */
  readonly byHour: readonly number[]
  readonly days: number
  readonly dayOf: number
}

/** The evidence of a silence at the time it was noticed. */
export interface SilenceEvidence {
  /** When the last push arrived, epoch milliseconds. */
  readonly sinceMs: number
  readonly noticedAtMs: number
  /** How many entries polls had found by that time that happened since the last push and that no push had reported. */
  readonly found: number
  /** The share of pushes that were lost before, estimated. */
  readonly loss: number
}

/** The channel before any push. */
export const newPushChannel: PushChannel = {
  health: 'unknown',
  pushed: 0,
  missed: 0,
  missedSincePush: 0,
  silence: null,
  pushedSinceSilence: 0,
  lastPushAtMs: null,
  evidenceFromMs: Number.NEGATIVE_INFINITY,
  byHour: Array.from({ length: 24 }, () => 0),
  days: 0,
  dayOf: 0,
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/**
 * The minimum number of verdicts that are remembered, enough to tell a loss of one in fifty from none. At least a day's verdicts count,
 * because pushes count at once and losses only when a poll finds them: by the hour, a night of polls would look like loss and a day of
 * scans like none.
 */
const REMEMBERED_MIN = 500
/** With fewer verdicts no loss can be estimated. */
const VERDICTS_MIN = 20
/** Two limits give hysteresis: pushes become lossy above the first, and healthy again only below the second. */
const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** The prior: one push in twenty is lost, with the weight of twenty verdicts. */
const PRIOR = { missed: 1, verdicts: 20 }
/**
 * A silence is believed if the evidence would arise by chance less often than this. Every pause longer than the grace is a chance for a
 * false alarm; with some thirty a day, this gives one false alarm a year.
 */
const CHANCE_MAX = 1e-4
/** A lower bound of the loss, because losses sometimes share a cause, such as a parcel or a second. */
const LOSS_MIN = 0.02
/** One entry alone is never enough. */
const FOUND_MIN = 2
/** How often an hour is unusual, so that no push is expected, as on a holiday or a bad day of the carrier. */
const UNUSUAL = 0.01
/** On an unusual day polls find entries this much more rarely, so each one found since the last push suggests a usual day. */
const UNUSUAL_FIND = 0.25
/** After a silence pushes must arrive for this long, and this many of them, before they count as healthy. */
const PROBATION_MS = HOUR_MS / 2
/** Yesterday weighs more than last week. */
const DAY_FADE = 0.8

/** The estimated share of entries whose push is lost, near one in twenty while little is known. */
export function estimatePushLoss({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.verdicts)
}

/**
 * How many entries since the last push only polls reported, for operators. In a silence these are at least the entries that proved it: they
 * count as missed only after the grace, and until then the verdict would stand without its evidence.
 */
export function unpushedSinceLast({ missedSincePush, silence }: PushChannel): number {
  return Math.max(missedSincePush, silence?.found ?? 0)
}

/**
 * The channel as of a clock that may have been put back. If its last push stayed ahead, no entry found by polls would have happened after
 * it, and a silence would stay unnoticed for as long as the jump.
 */
export function clampChannelToClock(channel: PushChannel, nowMs: number): PushChannel {
  const { lastPushAtMs, evidenceFromMs, dayOf } = channel
  const day = Math.floor(nowMs / DAY_MS)
  if ((lastPushAtMs ?? nowMs) <= nowMs && evidenceFromMs <= nowMs && dayOf <= day) return channel
  return {
    ...channel,
    lastPushAtMs: notAhead(lastPushAtMs, nowMs),
    evidenceFromMs: notAhead(evidenceFromMs, nowMs),
    dayOf: Math.min(dayOf, day),
  }
}

/** The channel after `count` pushes were recorded at about one time, whether or not polls had reported their entries before. */
export function afterPush(channel: PushChannel, atMs: number, count = 1): PushChannel {
  const wasSilent = channel.health === 'silent'
  const counted = countArrivals(weigh(channel, { pushed: count, missed: 0 }), atMs, count)
  return assess(
    {
      ...counted,
      health: wasSilent ? 'lossy' : counted.health,
      missedSincePush: 0,
      silence: null,
      pushedSinceSilence: wasSilent ? count : counted.pushedSinceSilence + count,
      lastPushAtMs: Math.max(channel.lastPushAtMs ?? atMs, atMs),
      evidenceFromMs: wasSilent ? atMs : channel.evidenceFromMs,
    },
    atMs,
  )
}

/**
 * The channel after a poll found an entry that no push reported within the grace. In a silence it is counted, but says nothing about
 * losses.
 */
export function afterMiss(channel: PushChannel, { eventAtMs, nowMs }: { readonly eventAtMs: number; readonly nowMs: number }): PushChannel {
  if (eventAtMs < channel.evidenceFromMs) return channel
  const sincePush = channel.lastPushAtMs !== null && eventAtMs > channel.lastPushAtMs
  const missedSincePush = channel.missedSincePush + (sincePush ? 1 : 0)
  if (channel.health === 'silent') return { ...channel, missedSincePush }
  const weighed = { ...weigh(channel, { pushed: 0, missed: 1 }), missedSincePush }
  return sincePush && isSilence(channel, { found: missedSincePush, overdue: missedSincePush, settledToMs: eventAtMs })
    ? silenced(weighed, { found: missedSincePush, nowMs, loss: estimatePushLoss(channel) })
    : assess(weighed, nowMs)
}

/** Entries after the last push that polls found and no push has reported. */
export interface UnpushedEntries {
  readonly found: number
  /** How many of these entries happened before `settledToMs`. */
  readonly overdue: number
  /** Events up to this time should have been pushed by now: one grace ago. */
  readonly settledToMs: number
  readonly nowMs: number
}

/**
 * The channel after a look at entries without a push. A single one counts as a missed push only after the grace from its finding, but a
 * silence of all pushes can be noticed now.
 */
export function afterUnpushedEntries(channel: PushChannel, unpushed: UnpushedEntries): PushChannel {
  return channel.health !== 'silent' && channel.lastPushAtMs !== null && isSilence(channel, unpushed)
    ? silenced(channel, { ...unpushed, loss: estimatePushLoss(channel) })
    : channel
}

/**
 * Compares two explanations of the same evidence. If pushes are silent, all of it is expected. If pushes still arrive, every overdue entry
 * was lost by itself, and the usual pushes of this hour are absent by chance or because the hour is unusual, which every further entry
 * found by polls makes less likely. So a busy carrier's silence is noticed within minutes of the grace, a small carrier's after more losses
 * in a row than ever before, and a quiet day, when polls find nothing, is no silence.
 */
function isSilence(channel: PushChannel, { found, overdue, settledToMs }: Omit<UnpushedEntries, 'nowMs'>): boolean {
  if (found < FOUND_MIN) return false
  const loss = Math.min(0.9, Math.max(LOSS_MIN, estimatePushLoss(channel)))
  // At the full cadence polls find everything, on an unusual day too, so only the losses count.
  const noneCame =
    channel.health === 'healthy' ? Math.exp(-expectedSinceLastPush(channel, settledToMs)) + UNUSUAL * UNUSUAL_FIND ** found : 1
  return Math.min(1, noneCame) * loss ** overdue < CHANCE_MAX
}

/** Entries that were missed in a silence say nothing about losses while pushes arrive. */
function silenced(
  channel: PushChannel,
  { found, nowMs, loss }: Pick<SilenceEvidence, 'found' | 'loss'> & { readonly nowMs: number },
): PushChannel {
  const missed = Math.max(0, channel.missed - channel.missedSincePush)
  const silence = { sinceMs: channel.lastPushAtMs ?? nowMs, noticedAtMs: nowMs, found, loss }
  return { ...channel, health: 'silent', missed, silence, pushedSinceSilence: 0 }
}

/** How many pushes are usual between the last one and `toMs`, by the same hours of earlier days. */
function expectedSinceLastPush(channel: PushChannel, toMs: number): number {
  const { lastPushAtMs, byHour, days } = channel
  if (lastPushAtMs === null || days === 0) return 0
  let expected = 0
  for (let atMs = Math.max(lastPushAtMs, toMs - DAY_MS); atMs < toMs; ) {
    const endMs = Math.min(toMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS)
    expected += (((byHour[hourOfDay(atMs)] ?? 0) / days) * (endMs - atMs)) / HOUR_MS
    atMs = endMs
  }
  return expected
}

/** Adds verdicts; each fades all earlier ones. */
function weigh(channel: PushChannel, { pushed, missed }: Pick<PushChannel, 'pushed' | 'missed'>): PushChannel {
  const pushedADay = channel.days === 0 ? 0 : channel.byHour.reduce((total, count) => total + count, 0) / channel.days
  const fade = 1 - 1 / Math.max(REMEMBERED_MIN, pushedADay)
  const faded = fade ** (pushed + missed)
  const each = (1 - faded) / (1 - fade) / (pushed + missed)
  return { ...channel, pushed: channel.pushed * faded + pushed * each, missed: channel.missed * faded + missed * each }
}

function countArrivals(channel: PushChannel, atMs: number, arrived: number): PushChannel {
  const day = Math.floor(atMs / DAY_MS)
  const passed = channel.dayOf === 0 ? 0 : Math.max(0, day - channel.dayOf)
  const fade = DAY_FADE ** passed
  const hour = hourOfDay(atMs)
  return {
    ...channel,
    byHour: channel.byHour.map((count, at) => count * fade + (at === hour ? arrived : 0)),
    days: channel.dayOf === 0 ? 1 : channel.days * fade + Math.min(passed, 7),
    dayOf: Math.max(channel.dayOf, day),
  }
}

function assess(channel: PushChannel, nowMs: number): PushChannel {
  const { health, pushed, missed, lastPushAtMs } = channel
  if (health === 'silent' || lastPushAtMs === null || pushed + missed < VERDICTS_MIN * 0.9) return channel
  const loss = estimatePushLoss(channel)
  if (loss > LOSSY_ABOVE) return { ...channel, health: 'lossy' }
  if (health === 'healthy') return channel
  if (health === 'lossy' && loss > HEALTHY_BELOW) return channel
  const onProbation =
    channel.evidenceFromMs > 0 && (channel.pushedSinceSilence < VERDICTS_MIN || nowMs < channel.evidenceFromMs + PROBATION_MS)
  return onProbation ? channel : { ...channel, health: 'healthy' }
}

function hourOfDay(atMs: number): number {
  return Math.floor(atMs / HOUR_MS) % 24
}
