/**
 * Whether the carrier's pushes can be relied on (DOMAIN 6.1).
 *
 * `unknown`  before any push, and until a few verdicts are in: the full cadence, no alarm.
 * `healthy`  pushes come, few are lost.
 * `lossy`    pushes come, too many are lost, or they have only just begun to come again.
 * `silent`   none come although scans happen: the full cadence and an alarm.
 */
export type PushHealth = 'unknown' | 'healthy' | 'lossy' | 'silent'

/** What is known of the push channel: explicit data, small enough to keep. Weights fade, so that old verdicts count less. */
export interface PushChannel {
  readonly health: PushHealth
  /** Entries that pushes brought, of the latest few hundred or the last day's, whichever are more. */
  readonly pushed: number
  /** Entries that only polls brought, after the grace (DOMAIN 6.6). */
  readonly missed: number
  /** Of the missed ones, those that happened after the last push arrived: nothing speaks against a silence any more. */
  readonly missedSincePush: number
  /** Pushes since they came again. */
  readonly pushedSinceSilence: number
  readonly lastPushAtMs: number | null
  /** What happened before this is no evidence: it fell in a silence that is over. */
  readonly evidenceFromMs: number
  /** Pushes by hour of the day (UTC), a faded sum over days; `days` fades alike. */
  readonly byHour: readonly number[]
  readonly days: number
  readonly dayOf: number
}

export const newPushChannel: PushChannel = {
  health: 'unknown',
  pushed: 0,
  missed: 0,
  missedSincePush: 0,
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
 * So many verdicts are remembered at least, to tell one loss in fifty from none; and never less than a day's: pushes count at once and losses
 * when a poll finds them, so that by the hour a night of polls looks like a loss and a day of scans like none.
 */
const REMEMBERED_MIN = 500
/** With fewer there is no saying. */
const VERDICTS_MIN = 20
/** Hysteresis: worse than the first is lossy, and only better than the second is healthy again. */
const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** Before anything is seen, one in twenty is taken for lost, with the weight of twenty verdicts. */
const PRIOR = { missed: 1, verdicts: 20 }
/**
 * A silence is believed when all that speaks for it would be chance less often than this. Pauses longer than the grace are the occasions: with
 * some thirty a day that is a false alarm a year.
 */
const CHANCE_MAX = 1e-4
/** However few were lost: those that are have something in common at times, a parcel or a second. */
const LOSS_MIN = 0.02
/** One found entry alone is never enough. */
const FOUND_MIN = 2
/** How often the habit of the hour does not hold, so that no push is no wonder: a holiday, a carrier's bad day. */
const UNUSUAL = 0.01
/** On such a day an entry that a poll finds is this much rarer than on others: each one since the last push speaks for a usual day. */
const UNUSUAL_FIND = 0.25
/** After a silence pushes must come for this long, and so many of them. */
const PROBATION_MS = HOUR_MS / 2
/** Yesterday counts more than last week. */
const DAY_FADE = 0.8

/** The part of entries whose push is lost, leaning on one in twenty while little is known. */
export function estimatePushLoss({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.verdicts)
}

/** Pushes came and were recorded at about one time, whether or not polls had brought their entries just before. */
export function afterPush(channel: PushChannel, atMs: number, count = 1): PushChannel {
  const wasSilent = channel.health === 'silent'
  const counted = countArrivals(weigh(channel, { pushed: count, missed: 0 }), atMs, count)
  return assess(
    {
      ...counted,
      health: wasSilent ? 'lossy' : counted.health,
      missedSincePush: 0,
      pushedSinceSilence: wasSilent ? count : counted.pushedSinceSilence + count,
      lastPushAtMs: Math.max(channel.lastPushAtMs ?? atMs, atMs),
      evidenceFromMs: wasSilent ? atMs : channel.evidenceFromMs,
    },
    atMs,
  )
}

/** A poll brought an entry that no push had brought within the grace. */
export function afterMiss(channel: PushChannel, { eventAtMs, nowMs }: { readonly eventAtMs: number; readonly nowMs: number }): PushChannel {
  if (eventAtMs < channel.evidenceFromMs || channel.health === 'silent') return channel
  const sincePush = channel.lastPushAtMs !== null && eventAtMs > channel.lastPushAtMs
  const missedSincePush = channel.missedSincePush + (sincePush ? 1 : 0)
  const weighed = { ...weigh(channel, { pushed: 0, missed: 1 }), missedSincePush }
  return sincePush && isSilence(channel, { found: missedSincePush, overdue: missedSincePush, settledToMs: eventAtMs })
    ? silenced(weighed)
    : assess(weighed, nowMs)
}

/** Entries that polls found and no push has brought, of those that happened after the last push. */
export interface UnpushedEntries {
  readonly found: number
  /** Those of them that happened before `settledToMs`. */
  readonly overdue: number
  /** What happened by then should have been pushed by now: a grace ago. */
  readonly settledToMs: number
}

/**
 * Whether a finding counts as a missed push is decided later, when a push that is on its way has had the grace from the finding on; that none
 * comes at all can be seen now.
 */
export function afterUnpushedEntries(channel: PushChannel, unpushed: UnpushedEntries): PushChannel {
  return channel.health !== 'silent' && channel.lastPushAtMs !== null && isSilence(channel, unpushed) ? silenced(channel) : channel
}

/**
 * A test of two stories by what each would make of the same evidence. In a silence all of it is as expected. While pushes come, every overdue
 * entry was lost by itself; and that none of the pushes came that are usual at this hour is chance, or the hour is not a usual one, which
 * every entry that polls go on finding speaks against. So a busy carrier's silence is seen within minutes of the grace, a small one's after
 * as many losses in a row as its pushes never had, and a quiet day, where polls find nothing, is none.
 */
function isSilence(channel: PushChannel, { found, overdue, settledToMs }: UnpushedEntries): boolean {
  if (found < FOUND_MIN) return false
  const loss = Math.min(0.9, Math.max(LOSS_MIN, estimatePushLoss(channel)))
  // At the full cadence polls find whatever happens, on an unusual day as well: then only the losses speak.
  const noneCame =
    channel.health === 'healthy' ? Math.exp(-expectedSinceLastPush(channel, settledToMs)) + UNUSUAL * UNUSUAL_FIND ** found : 1
  return Math.min(1, noneCame) * loss ** overdue < CHANCE_MAX
}

/** What was missed in the silence says nothing of how many are lost when pushes come. */
function silenced(channel: PushChannel): PushChannel {
  return { ...channel, health: 'silent', missed: Math.max(0, channel.missed - channel.missedSincePush), pushedSinceSilence: 0 }
}

/** How many pushes would have come from the last one to a time, by the habit of these hours on the days before. */
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

/** Adds verdicts, each of which fades all before it. */
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
