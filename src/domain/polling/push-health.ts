import { notAhead } from '../put-back.ts'

/**
 * How reliable the carrier's pushes are (DOMAIN 6.1).
 *
 * `unknown`: no push came yet, or it is too early to say. Polls keep their full cadence, and there is no alarm. `healthy`: pushes have
 * arrived for some time, and few were lost or went into quarantine. `lossy`: pushes arrive, but too many are lost or go into
 * quarantine, or did so until recently. `silent`: no push arrives although the carrier scans parcels. Polls keep their full cadence, and
 * operators are alarmed.
 */
export type PushHealth = 'unknown' | 'healthy' | 'lossy' | 'silent'

/**
 * The facts about the push channel, that is, about all pushes of the carrier. Each entry counts either as pushed or as missed. Counts fade,
 * so that old entries weigh less.
 */
export interface PushChannel {
  readonly health: PushHealth
  /** How many entries were reported by pushes, among the last 500 entries or the entries of the last day, whichever are more. */
  readonly pushed: number
  /** How many of these entries were missed: only polls reported them, and their grace period is over (DOMAIN 6.6). */
  readonly missed: number
  /** How many missed entries happened after the last push. Unlike `missed`, this count goes on during a silence. */
  readonly missedSincePush: number
  /** The evidence for the present silence; null: pushes are not silent. */
  readonly silence: SilenceEvidence | null
  /** The last silence that has ended; null: there was none. */
  readonly lastSilence: PastSilence | null
  /** The trial of pushes; null: they are healthy, silent or too lossy, or no push came yet. */
  readonly trial: Trial | null
  /** One character for each of the newest pushes, the newest last: whether the push was understood. */
  readonly newest: string
  /** When the last push came that was not understood, epoch milliseconds; null: there was no such push. */
  readonly misreadAtMs: number | null
  readonly lastPushAtMs: number | null
  /** Only entries from this time on count, epoch milliseconds. Earlier entries belong to a silence or to a time before the relay started. */
  readonly evidenceFromMs: number
  /** The number of pushes in each hour of the day (UTC), over `days` days. Both fade in the same way. */
  readonly byHour: readonly number[]
  readonly days: number
  readonly dayOf: number
}

/**
 * A time in which pushes seem to be reliable but do not count as healthy yet. It takes time to notice a loss: a poll has to find the entry,
 * and then the grace period has to pass. Times are epoch milliseconds.
 */
export interface Trial {
  /** When the trial began, or when the relay last started, whichever is later. */
  readonly sinceMs: number
  /** When the first answered poll since `sinceMs` was sent; null: no poll was answered, so no loss can have been noticed. */
  readonly polledAtMs: number | null
  readonly pushes: number
}

/** A silence that has ended: from the last push before it to the first push after it, epoch milliseconds. */
export interface PastSilence {
  readonly fromMs: number
  readonly toMs: number
}

/** The evidence for a silence when it was noticed. */
export interface SilenceEvidence {
  /** When the last push arrived, epoch milliseconds. */
  readonly sinceMs: number
  readonly noticedAtMs: number
  /** The number of entries since the last push that only polls had reported. */
  readonly found: number
  /** The estimated share of pushes that were lost before the silence. */
  readonly loss: number
}

export const newPushChannel: PushChannel = {
  health: 'unknown',
  pushed: 0,
  missed: 0,
  missedSincePush: 0,
  silence: null,
  lastSilence: null,
  trial: null,
  newest: '',
  misreadAtMs: null,
  lastPushAtMs: null,
  evidenceFromMs: Number.NEGATIVE_INFINITY,
  byHour: Array.from({ length: 24 }, () => 0),
  days: 0,
  dayOf: 0,
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/**
 * The counts cover at least this many entries: enough to distinguish a loss of one in fifty from no loss. They also cover at least a day,
 * because a push counts at once, but a lost push counts only when a poll finds its entry, perhaps hours later.
 */
const REMEMBERED_MIN = 500
/** Pushes become lossy only after at least this many entries. */
const ENTRIES_MIN = 20
/** After 20 entries the counts add up to a little less, because they fade. */
const FADED_ENTRIES_MIN = ENTRIES_MIN * 0.9
/** Pushes count as healthy only if at least this many of them came during their trial. */
export const TRIAL_PUSHES = ENTRIES_MIN
/**
 * Of the `kept` newest pushes, if at least `tooMany` were not understood, pushes become lossy. If at most `few` were not understood, pushes may
 * become healthy again.
 */
const NEWEST = { kept: 20, tooMany: 3, few: 1 }
const UNDERSTOOD = '.'
const MISREAD = 'x'
/** Above this estimated loss pushes become lossy. They become healthy only below the next limit, so that the state does not flicker. */
export const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** The estimated loss starts as if one of 20 pushes had been lost. */
const PRIOR = { missed: 1, entries: 20 }
/**
 * Pushes count as silent if the evidence arises by chance only with a probability below this. Each pause that is longer than the grace
 * period may cause a false alarm. With some thirty such pauses a day, there is one false alarm a year.
 */
const CHANCE_MAX = 1e-4
/** `isSilence` assumes at least this loss, because pushes are not always lost independently: the carrier may never push some parcels. */
const LOSS_MIN = 0.02
/** Pushes count as silent only if at least this many entries lack a push. */
const FOUND_MIN = 2
/** The probability that an hour is unusual, such as on a holiday. In an unusual hour no push is expected. */
const UNUSUAL = 0.01
/** In an unusual hour, polls find only this share of the usual entries. So each entry that they find makes an unusual hour less probable. */
const UNUSUAL_FIND = 0.25
/** After pushes were lossy or silent, their trial takes at least this long. */
const PROBATION_MS = HOUR_MS / 2
/** Each day, `byHour` and `days` are multiplied by this. */
const DAY_FADE = 0.8

/** Estimates the share of entries whose push is lost. */
export function estimatePushLoss({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.entries)
}

/**
 * Counts the entries since the last push that only polls have reported, for operators. In a silence, the result is at least `found` of the
 * evidence. Some of these entries do not count as missed yet, because their grace period is not over.
 */
export function unpushedSinceLast({ missedSincePush, silence }: PushChannel): number {
  return Math.max(missedSincePush, silence?.found ?? 0)
}

/** Returns how many newest pushes are known (`count`), and how many of them were not understood (`misread`). */
export function newestPushes({ newest }: Pick<PushChannel, 'newest'>): { readonly count: number; readonly misread: number } {
  return { count: newest.length, misread: newest.split(MISREAD).length - 1 }
}

/** Whether so many of the newest pushes were not understood that pushes are not reliable. */
export function areMisread({ newest, health }: Pick<PushChannel, 'newest' | 'health'>): boolean {
  return newestPushes({ newest }).misread > (health === 'lossy' ? NEWEST.few : NEWEST.tooMany - 1)
}

/** The trial of pushes, as operators see it. */
export interface Probation extends Pick<Trial, 'sinceMs' | 'pushes'> {
  /**
   * The earliest time at which pushes count as healthy, epoch milliseconds, if at least `TRIAL_PUSHES` pushes have come. Null: not known,
   * because the carrier has not answered a poll since the trial began.
   */
  readonly untilMs: number | null
}

/** Null: there is no trial. `graceMs`: how late a push may be before it counts as missed. */
export function probationOf({ trial, health }: PushChannel, graceMs: number): Probation | null {
  if (trial === null) return null
  const { sinceMs, polledAtMs, pushes } = trial
  const leastMs = health === 'lossy' ? sinceMs + PROBATION_MS : sinceMs
  return { sinceMs, pushes, untilMs: polledAtMs === null ? null : Math.max(leastMs, polledAtMs + graceMs) }
}

/**
 * Corrects the push channel after the clock was put back, so that no time is in the future. A last push in the future would seem newer than
 * all entries, so that no silence could be noticed.
 */
export function clampChannelToClock(channel: PushChannel, nowMs: number): PushChannel {
  const { lastPushAtMs, evidenceFromMs, dayOf, trial, lastSilence, misreadAtMs } = channel
  const day = Math.floor(nowMs / DAY_MS)
  const latestMs = Math.max(lastPushAtMs ?? 0, evidenceFromMs, trial?.sinceMs ?? 0, trial?.polledAtMs ?? 0, lastSilence?.toMs ?? 0)
  if (Math.max(latestMs, misreadAtMs ?? 0) <= nowMs && dayOf <= day) return channel
  return {
    ...channel,
    lastPushAtMs: notAhead(lastPushAtMs, nowMs),
    evidenceFromMs: notAhead(evidenceFromMs, nowMs),
    trial: trial === null ? null : { ...trial, sinceMs: notAhead(trial.sinceMs, nowMs), polledAtMs: notAhead(trial.polledAtMs, nowMs) },
    lastSilence: lastSilence === null ? null : { fromMs: notAhead(lastSilence.fromMs, nowMs), toMs: notAhead(lastSilence.toMs, nowMs) },
    misreadAtMs: notAhead(misreadAtMs, nowMs),
    dayOf: Math.min(dayOf, day),
  }
}

/** Returns the channel after `count` pushes that were recorded at about the same time. Polls may have reported their entries before. */
export function afterPush(channel: PushChannel, atMs: number, count = 1): PushChannel {
  const wasSilent = channel.health === 'silent'
  const counted = countArrivals(weigh(channel, { pushed: count, missed: 0 }), atMs, count)
  const { trial, ...after } = assess(
    {
      ...counted,
      health: wasSilent ? 'lossy' : counted.health,
      missedSincePush: 0,
      silence: null,
      lastSilence: wasSilent ? { fromMs: channel.silence?.sinceMs ?? channel.lastPushAtMs ?? atMs, toMs: atMs } : channel.lastSilence,
      newest: addNewest(channel, UNDERSTOOD, count),
      lastPushAtMs: Math.max(channel.lastPushAtMs ?? atMs, atMs),
      evidenceFromMs: wasSilent ? atMs : channel.evidenceFromMs,
    },
    atMs,
  )
  return { ...after, trial: trial === null ? null : { ...trial, pushes: trial.pushes + count } }
}

/** Returns the channel after `count` pushes went into quarantine at about the same time because they were not understood. */
export function afterMisread(channel: PushChannel, atMs: number, count = 1): PushChannel {
  const misreadAtMs = Math.max(channel.misreadAtMs ?? atMs, atMs)
  return assess({ ...channel, newest: addNewest(channel, MISREAD, count), misreadAtMs }, atMs)
}

function addNewest({ newest }: PushChannel, sign: string, count: number): string {
  return (newest + sign.repeat(Math.min(count, NEWEST.kept))).slice(-NEWEST.kept)
}

/** Returns the channel after an answered poll that was sent at `askedAtMs`. Such a poll finds entries whose push was lost. */
export function afterPoll(channel: PushChannel, askedAtMs: number): PushChannel {
  const { trial } = channel
  if (trial === null || trial.polledAtMs !== null || askedAtMs < trial.sinceMs) return channel
  return { ...channel, trial: { ...trial, polledAtMs: askedAtMs } }
}

/** Makes the channel healthy if its trial is over. A push alone does not end the trial, because other pushes may have been lost. */
export function afterTrial(channel: PushChannel, { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number }): PushChannel {
  const probation = probationOf(channel, graceMs)
  if (probation === null || probation.untilMs === null || probation.untilMs > nowMs || probation.pushes < TRIAL_PUSHES) return channel
  return { ...channel, health: 'healthy', trial: null }
}

/**
 * Returns the channel after the grace period of an entry that only a poll has reported. In a silence, such an entry does not change the
 * estimated loss.
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

/** Entries after the last push that only polls have reported. */
export interface UnpushedEntries {
  readonly found: number
  /** How many of these happened before `settledToMs`. */
  readonly overdue: number
  /** One grace period ago. Pushes of events up to this time should have arrived by now. */
  readonly settledToMs: number
  readonly nowMs: number
}

/** Makes the channel silent if the entries without a push prove a silence. Some of these entries may not count as missed yet. */
export function afterUnpushedEntries(channel: PushChannel, unpushed: UnpushedEntries): PushChannel {
  return channel.health !== 'silent' && channel.lastPushAtMs !== null && isSilence(channel, unpushed)
    ? silenced(channel, { ...unpushed, loss: estimatePushLoss(channel) })
    : channel
}

/**
 * Whether pushes are silent. If they are not, two things have happened by chance: the push of each overdue entry was lost, and the usual
 * pushes of this hour did not come, or the hour is unusual. Pushes are silent if both together are too improbable. Each further entry that
 * polls find makes an unusual hour less probable.
 *
 * So the silence of a busy carrier is noticed within minutes after the grace period. With a small carrier it takes longer, because several
 * entries in a row must lack a push. A quiet day, on which polls find nothing, is not a silence.
 */
function isSilence(channel: PushChannel, { found, overdue, settledToMs }: Omit<UnpushedEntries, 'nowMs'>): boolean {
  if (found < FOUND_MIN) return false
  const loss = Math.min(0.9, Math.max(LOSS_MIN, estimatePushLoss(channel)))
  // While pushes are not healthy, polls keep their full cadence and find all entries, even in an unusual hour. Then only the losses count.
  const noneCame =
    channel.health === 'healthy' ? Math.exp(-expectedSinceLastPush(channel, settledToMs)) + UNUSUAL * UNUSUAL_FIND ** found : 1
  return Math.min(1, noneCame) * loss ** overdue < CHANCE_MAX
}

/** Makes the channel silent. Entries missed in the silence are no longer counted, because they do not show how many pushes are usually lost. */
function silenced(
  channel: PushChannel,
  { found, nowMs, loss }: Pick<SilenceEvidence, 'found' | 'loss'> & { readonly nowMs: number },
): PushChannel {
  const missed = Math.max(0, channel.missed - channel.missedSincePush)
  const silence = { sinceMs: channel.lastPushAtMs ?? nowMs, noticedAtMs: nowMs, found, loss }
  return { ...channel, health: 'silent', missed, silence, trial: null }
}

/** Returns how many pushes usually come in the time from the last push to `toMs`, going by the same hours of earlier days. */
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

/** Adds entries to the counts. With each entry, the counts of earlier entries fade a little. */
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

/** Makes the channel lossy if too many pushes are lost or not understood. Otherwise begins a trial if pushes are not healthy yet. */
function assess(channel: PushChannel, nowMs: number): PushChannel {
  const { health, pushed, missed, lastPushAtMs, trial } = channel
  if (health === 'silent' || lastPushAtMs === null) return channel
  const loss = estimatePushLoss(channel)
  const isLossy = pushed + missed >= FADED_ENTRIES_MIN && loss > LOSSY_ABOVE
  if (isLossy || areMisread(channel)) return { ...channel, health: 'lossy', trial: null }
  if (health === 'healthy') return channel
  if (health === 'lossy' && loss > HEALTHY_BELOW) return { ...channel, trial: null }
  return trial === null ? { ...channel, trial: { sinceMs: nowMs, polledAtMs: null, pushes: 0 } } : channel
}

function hourOfDay(atMs: number): number {
  return Math.floor(atMs / HOUR_MS) % 24
}
