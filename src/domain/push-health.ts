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
  /** Entries that pushes brought, the latest few hundred. */
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
/** So many verdicts are remembered: enough to tell one loss in fifty from none, few enough to notice a change within a busy hour. */
const REMEMBERED = 500
/** With fewer there is no saying. */
const VERDICTS_MIN = 20
/** Hysteresis: worse than the first is lossy, and only better than the second is healthy again. */
const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** Before anything is seen, one in twenty is taken for lost, with the weight of twenty verdicts. */
const PRIOR = { missed: 1, verdicts: 20 }
/** A silence is believed when so many losses in a row would be chance less often than once in a million. */
const CHANCE_MAX = 1e-6
const SILENT_MISSES_MIN = 3
/** When so many pushes would have come by the habit of the hour and none did, two misses are enough. */
const OVERDUE_PUSHES = 10
const SILENT_MISSES_MIN_OVERDUE = 2
/** After a silence pushes must come for this long, and so many of them. */
const PROBATION_MS = HOUR_MS / 2
/** Yesterday counts more than last week. */
const DAY_FADE = 0.8

/** The part of entries whose push is lost, leaning on one in twenty while little is known. */
export function lossOf({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.verdicts)
}

/** A push brought a new entry. */
export function afterPush(channel: PushChannel, atMs: number): PushChannel {
  const wasSilent = channel.health === 'silent'
  const counted = countArrival(weigh(channel, true), atMs)
  return assess(
    {
      ...counted,
      health: wasSilent ? 'lossy' : counted.health,
      missedSincePush: 0,
      pushedSinceSilence: wasSilent ? 1 : counted.pushedSinceSilence + 1,
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
  const weighed = { ...weigh(channel, false), missedSincePush }
  if (sincePush && missedSincePush >= missesForSilence(channel, nowMs)) {
    // What was missed in the silence says nothing of how many are lost when pushes come.
    return { ...weighed, health: 'silent', missed: Math.max(0, weighed.missed - missedSincePush), pushedSinceSilence: 0 }
  }
  return assess(weighed, nowMs)
}

/**
 * So many entries that happened after the last push are known from polls, and older than the grace. Whether they count as missed pushes is
 * decided later, when a push that is on its way has had the grace from the finding on; that none comes at all can be seen now.
 */
export function afterUnpushed(channel: PushChannel, unpushed: number, nowMs: number): PushChannel {
  if (channel.health === 'silent' || channel.lastPushAtMs === null || unpushed < missesForSilence(channel, nowMs)) return channel
  return { ...channel, health: 'silent', missed: Math.max(0, channel.missed - channel.missedSincePush), pushedSinceSilence: 0 }
}

/** How many misses since the last push it takes to call it silence. */
function missesForSilence(channel: PushChannel, nowMs: number): number {
  if (expectedSinceLastPush(channel, nowMs) >= OVERDUE_PUSHES) return SILENT_MISSES_MIN_OVERDUE
  const loss = Math.min(0.9, Math.max(0.005, lossOf(channel)))
  return Math.max(SILENT_MISSES_MIN, Math.ceil(Math.log(CHANCE_MAX) / Math.log(loss)))
}

/** How many pushes would have come since the last one, by the habit of these hours on the days before. */
function expectedSinceLastPush(channel: PushChannel, nowMs: number): number {
  const { lastPushAtMs, byHour, days } = channel
  if (lastPushAtMs === null || days === 0) return 0
  let expected = 0
  for (let atMs = Math.max(lastPushAtMs, nowMs - DAY_MS); atMs < nowMs; ) {
    const endMs = Math.min(nowMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS)
    expected += (((byHour[hourOfDay(atMs)] ?? 0) / days) * (endMs - atMs)) / HOUR_MS
    atMs = endMs
  }
  return expected
}

function weigh(channel: PushChannel, pushed: boolean): PushChannel {
  const fade = 1 - 1 / REMEMBERED
  return { ...channel, pushed: channel.pushed * fade + (pushed ? 1 : 0), missed: channel.missed * fade + (pushed ? 0 : 1) }
}

function countArrival(channel: PushChannel, atMs: number): PushChannel {
  const day = Math.floor(atMs / DAY_MS)
  const passed = channel.dayOf === 0 ? 0 : Math.max(0, day - channel.dayOf)
  const fade = DAY_FADE ** passed
  const hour = hourOfDay(atMs)
  return {
    ...channel,
    byHour: channel.byHour.map((count, at) => count * fade + (at === hour ? 1 : 0)),
    days: channel.dayOf === 0 ? 1 : channel.days * fade + Math.min(passed, 7),
    dayOf: Math.max(channel.dayOf, day),
  }
}

function assess(channel: PushChannel, nowMs: number): PushChannel {
  const { health, pushed, missed, lastPushAtMs } = channel
  if (health === 'silent' || lastPushAtMs === null || pushed + missed < VERDICTS_MIN * 0.9) return channel
  const loss = lossOf(channel)
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
