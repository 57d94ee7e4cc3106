import { notAhead } from '../put-back.ts'

/**
 * How reliable the carrier's pushes are (DOMAIN 6.1).
 *
 * `unknown`: no push came yet, or it is too early to tell. Polls keep their full cadence, and there is no alarm. `healthy`: pushes arrive,
 * and few are lost or go into quarantine, in a time long enough that a loss would have been noticed. `lossy`: pushes arrive, but too many
 * are lost or go into quarantine, or did so until recently. `silent`: no push arrives although the carrier scans. Polls keep their full
 * cadence, and operators are alarmed.
 */
export type PushHealth = 'unknown' | 'healthy' | 'lossy' | 'silent'

/**
 * The knowledge about the push channel, small enough to store. Each entry counts as pushed or as missed. Counts fade, so that old entries
 * weigh less.
 */
export interface PushChannel {
  readonly health: PushHealth
  /** How many entries pushes reported, of the last few hundred entries or those of the last day, whichever are more. */
  readonly pushed: number
  /** How many entries only polls reported although their grace period is over (DOMAIN 6.6). */
  readonly missed: number
  /** Missed entries that happened after the last push. No push contradicts them, so a silence keeps counting them. */
  readonly missedSincePush: number
  /** The proof of the silence; null: pushes are not silent. */
  readonly silence: SilenceEvidence | null
  /** The last silence that is over; null: there was none. */
  readonly lastSilence: PastSilence | null
  /** The time in which pushes have to prove themselves; null: they have done so, or are in trouble, or none came yet. */
  readonly trial: Trial | null
  /** One character for each of the newest pushes, the newest last. It tells whether the push was understood. */
  readonly newest: string
  /** When the last push came that was not understood, epoch milliseconds; null: there was none. */
  readonly misreadAtMs: number | null
  readonly lastPushAtMs: number | null
  /** Only events from this time on count, epoch milliseconds. Earlier ones fell into a silence that is over. */
  readonly evidenceFromMs: number
  /** Pushes for each hour of the day (UTC), summed over days and faded. `days` fades in the same way. */
  readonly byHour: readonly number[]
  readonly days: number
  readonly dayOf: number
}

/**
 * A time in which pushes seem to be reliable, but do not count as healthy yet. A loss would show only later: a poll has to find the entry,
 * and then the grace period has to pass. Times are epoch milliseconds.
 */
export interface Trial {
  /** When the first of these pushes came. */
  readonly sinceMs: number
  /** When the first answered poll since then was sent; null: the carrier has answered none, so no loss can have been noticed. */
  readonly polledAtMs: number | null
  readonly pushes: number
}

/** A silence that is over: from the last push before it to the first one after it, epoch milliseconds. */
export interface PastSilence {
  readonly fromMs: number
  readonly toMs: number
}

/** The proof of a silence, as it was when the silence was noticed. */
export interface SilenceEvidence {
  /** When the last push arrived, epoch milliseconds. */
  readonly sinceMs: number
  readonly noticedAtMs: number
  /** How many entries had happened since the last push, had been found by polls, and had been reported by no push. */
  readonly found: number
  /** The estimated share of pushes that were lost before the silence. */
  readonly loss: number
}

/** The channel before any push. */
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
 * The counts cover at least this many entries, enough to tell a loss of one in fifty from none. They also cover at least a day. A push
 * counts at once, but a lost push only when a poll finds its entry, perhaps hours later. In counts of one hour, pushes and losses would
 * belong to different scans.
 */
const REMEMBERED_MIN = 500
/** With fewer entries no loss can be estimated. Counts fade a little, so slightly fewer are enough. */
const ENTRIES_MIN = 20
const FADED_ENTRIES_MIN = ENTRIES_MIN * 0.9
/** Pushes count as healthy only when at least this many have come in their trial. */
export const TRIAL_PUSHES = ENTRIES_MIN
/**
 * `kept`: how many of the newest pushes are looked at, to see whether pushes are understood. `tooMany`: if this many are not, pushes become
 * lossy. `few`: with no more than this, they may become healthy again.
 */
const NEWEST = { kept: 20, tooMany: 3, few: 1 }
const UNDERSTOOD = '.'
const MISREAD = 'x'
/** Pushes become lossy above the first limit, and healthy again only below the second, so that the state does not flicker. */
const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** The estimate starts as if 20 entries were known and the push of one of them was lost. */
const PRIOR = { missed: 1, entries: 20 }
/**
 * A silence is believed if chance alone would bring such evidence less often than this. Every pause longer than the grace period is an
 * occasion for a false alarm. With some thirty a day, there is one false alarm a year.
 */
const CHANCE_MAX = 1e-4
/** The estimated loss is never lower, because several losses may have one cause, such as a parcel that the carrier never pushes. */
const LOSS_MIN = 0.02
/** A single entry is never enough. */
const FOUND_MIN = 2
/** The chance that an hour is unusual, so that no push is expected: a holiday, or a bad day of the carrier. */
const UNUSUAL = 0.01
/** On an unusual day polls find entries this much more rarely. So each entry found since the last push makes an unusual day less likely. */
const UNUSUAL_FIND = 0.25
/** After trouble the trial of pushes takes at least this long. */
const PROBATION_MS = HOUR_MS / 2
/** The counts of a day weigh this much one day later. */
const DAY_FADE = 0.8

/** The estimated share of entries whose push is lost. While little is known, it is near one in twenty. */
export function estimatePushLoss({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.entries)
}

/**
 * The number of entries since the last push that only polls have reported, for operators. In a silence, this is at least the number that
 * proved it: some of those entries may not count as missed yet, because their grace period is not over.
 */
export function unpushedSinceLast({ missedSincePush, silence }: PushChannel): number {
  return Math.max(missedSincePush, silence?.found ?? 0)
}

/** The number of the newest pushes, and of those among them that went into quarantine because they were not understood. */
export function newestPushes({ newest }: Pick<PushChannel, 'newest'>): { readonly count: number; readonly misread: number } {
  return { count: newest.length, misread: newest.split(MISREAD).length - 1 }
}

/** Whether too many of the newest pushes went into quarantine for pushes to be relied on. */
export function areMisread({ newest, health }: Pick<PushChannel, 'newest' | 'health'>): boolean {
  return newestPushes({ newest }).misread > (health === 'lossy' ? NEWEST.few : NEWEST.tooMany - 1)
}

/** The trial of pushes as operators see it. */
export interface Probation extends Pick<Trial, 'sinceMs' | 'pushes'> {
  /**
   * The earliest time at which pushes count as healthy, epoch milliseconds. They need `TRIAL_PUSHES` pushes too. Null: the carrier has not
   * answered a poll since the trial began, so no time is known.
   */
  readonly untilMs: number | null
}

/** The trial of pushes; null: there is none. `graceMs`: how late a push may be before it counts as missed. */
export function probationOf({ trial, health }: PushChannel, graceMs: number): Probation | null {
  if (trial === null) return null
  const { sinceMs, polledAtMs, pushes } = trial
  const leastMs = health === 'lossy' ? sinceMs + PROBATION_MS : sinceMs
  return { sinceMs, pushes, untilMs: polledAtMs === null ? null : Math.max(leastMs, polledAtMs + graceMs) }
}

/**
 * Corrects the channel if the clock was put back. If its last push stayed in the future, entries found by polls would seem older, and a
 * silence would go unnoticed for as long as the jump.
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

/**
 * The channel after `count` pushes that were recorded at about the same time. It does not matter whether polls had reported their entries
 * before.
 */
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

/** The channel after `count` pushes that were quarantined at about the same time because they were not understood. */
export function afterMisread(channel: PushChannel, atMs: number, count = 1): PushChannel {
  const misreadAtMs = Math.max(channel.misreadAtMs ?? atMs, atMs)
  return assess({ ...channel, newest: addNewest(channel, MISREAD, count), misreadAtMs }, atMs)
}

function addNewest({ newest }: PushChannel, sign: string, count: number): string {
  return (newest + sign.repeat(Math.min(count, NEWEST.kept))).slice(-NEWEST.kept)
}

/** The channel after an answered poll that was asked at this time: it would have found an entry whose push was lost. */
export function afterPoll(channel: PushChannel, askedAtMs: number): PushChannel {
  const { trial } = channel
  if (trial === null || trial.polledAtMs !== null || askedAtMs < trial.sinceMs) return channel
  return { ...channel, trial: { ...trial, polledAtMs: askedAtMs } }
}

/** The channel after a look at its trial. Only this makes pushes healthy, because a push alone does not show that no other was lost. */
export function afterTrial(channel: PushChannel, { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number }): PushChannel {
  const probation = probationOf(channel, graceMs)
  if (probation === null || probation.untilMs === null || probation.untilMs > nowMs || probation.pushes < TRIAL_PUSHES) return channel
  return { ...channel, health: 'healthy', trial: null }
}

/**
 * The channel after the grace period of an entry that only a poll reported. In a silence the entry is counted, but says nothing about
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

/** Entries after the last push that polls found and that no push has reported. */
export interface UnpushedEntries {
  readonly found: number
  /** How many of these happened before `settledToMs`. */
  readonly overdue: number
  /** Pushes of events up to this time should have arrived: one grace period ago. */
  readonly settledToMs: number
  readonly nowMs: number
}

/**
 * The channel after a look at entries without a push. A single entry counts as missed only after its grace period. A silence of all pushes
 * can be noticed now.
 */
export function afterUnpushedEntries(channel: PushChannel, unpushed: UnpushedEntries): PushChannel {
  return channel.health !== 'silent' && channel.lastPushAtMs !== null && isSilence(channel, unpushed)
    ? silenced(channel, { ...unpushed, loss: estimatePushLoss(channel) })
    : channel
}

/**
 * Compares two explanations of the same evidence. If pushes are silent, all of it is expected. If they are not, two things must have
 * happened: each overdue entry was lost by itself, and the usual pushes of this hour stayed away, by chance or because the hour is unusual.
 * Every further entry that polls find makes an unusual hour less likely.
 *
 * So the silence of a busy carrier is noticed within minutes after the grace period. That of a small carrier takes longer: several entries
 * in a row have to be without a push. A quiet day, on which polls find nothing, is no silence.
 */
function isSilence(channel: PushChannel, { found, overdue, settledToMs }: Omit<UnpushedEntries, 'nowMs'>): boolean {
  if (found < FOUND_MIN) return false
  const loss = Math.min(0.9, Math.max(LOSS_MIN, estimatePushLoss(channel)))
  // Unless pushes are healthy, polls keep their full cadence and find everything, even on an unusual day. Then only the losses count.
  const noneCame =
    channel.health === 'healthy' ? Math.exp(-expectedSinceLastPush(channel, settledToMs)) + UNUSUAL * UNUSUAL_FIND ** found : 1
  return Math.min(1, noneCame) * loss ** overdue < CHANCE_MAX
}

/** Marks the channel silent. Takes out the entries missed in the silence: they do not tell how many pushes are lost when pushes arrive. */
function silenced(
  channel: PushChannel,
  { found, nowMs, loss }: Pick<SilenceEvidence, 'found' | 'loss'> & { readonly nowMs: number },
): PushChannel {
  const missed = Math.max(0, channel.missed - channel.missedSincePush)
  const silence = { sinceMs: channel.lastPushAtMs ?? nowMs, noticedAtMs: nowMs, found, loss }
  return { ...channel, health: 'silent', missed, silence, trial: null }
}

/** How many pushes usually come between the last one and `toMs`, judged by the same hours of earlier days. */
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

/** Adds entries to the counts; each one fades all earlier ones. */
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

/** Notices trouble, and begins a trial when there is none. */
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
