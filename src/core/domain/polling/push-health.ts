import { notAhead } from '../instant.ts'

/**
 * How reliable the carrier's pushes are (DOMAIN 6.1).
 *
 * `unknown`: no push came yet, or the first trial (`Trial`) is not over. `healthy`: a trial is over, and few pushes are lost or go into quarantine.
 * `lossy`: too many pushes are lost or go into quarantine. After that, and after a silence, pushes stay lossy until a trial is over. `silent`: no
 * push arrives although the carrier scans parcels; operators are alarmed. Polls keep their full cadence unless pushes are healthy.
 */
export type PushHealth = 'unknown' | 'healthy' | 'lossy' | 'silent'

/** The facts about all pushes of the carrier. Times are epoch milliseconds. */
export interface PushChannel {
  readonly health: PushHealth
  /** How many entries pushes reported. Old entries weigh less: `pushed + missed` tends to 500, or to the pushes of a day if these are more. */
  readonly pushed: number
  /** How many entries only polls reported, after their grace period (DOMAIN 6.6). Weighed like `pushed`. */
  readonly missed: number
  /** How many missed entries happened after the last push. It grows even in a silence, when `missed` does not. */
  readonly missedSincePush: number
  /** Null: pushes are not silent. */
  readonly silence: SilenceEvidence | null
  readonly lastSilence: PastSilence | null
  /** Null: no trial is under way. */
  readonly trial: Trial | null
  /** The 20 newest pushes, the newest last: `.` for a push that was understood, `x` for one that was not. */
  readonly newest: string
  /** When the last push came that was not understood; null: there was no such push. */
  readonly misreadAtMs: number | null
  /** When the last push came; null: no push came yet. If the relay restarts outside a silence, it is set to the time of the start. */
  readonly lastPushAtMs: number | null
  /** Only entries from this time on count as missed. Earlier ones belong to a silence, or to a time before the relay started. */
  readonly evidenceFromMs: number
  /** The number of pushes in each hour of the day (UTC), over `days` days. Each day, `byHour` and `days` fade by `DAY_FADE`. */
  readonly byHour: readonly number[]
  readonly days: number
  /** The day of the last push, counted from 1970; 0: no push came yet. */
  readonly dayOf: number
}

/**
 * A time in which pushes seem reliable but do not count as healthy yet. A loss is noticed late: first a poll has to find the entry, then its
 * grace period has to pass.
 */
export interface Trial {
  /** When the trial began, or when the relay last started, whichever is later. */
  readonly sinceMs: number
  /** When the first answered poll since `sinceMs` was sent; null: no poll was answered yet. */
  readonly polledAtMs: number | null
  readonly pushes: number
}

/** A silence that has ended: from the last push before it to the first push after it. */
export interface PastSilence {
  readonly fromMs: number
  readonly toMs: number
}

/** The evidence for a silence when it was noticed. */
export interface SilenceEvidence {
  /** See `lastPushAtMs`. */
  readonly sinceMs: number
  readonly noticedAtMs: number
  /** See `UnpushedEntries`. */
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
 * `pushed + missed` tends to at least this: enough to tell a loss of one in fifty from no loss. The counts also cover at least a day, because a
 * lost push counts only after a poll has found its entry, perhaps hours later.
 */
const REMEMBERED_MIN = 500
/** Pushes become lossy only after at least this many entries. */
const ENTRIES_MIN = 20
/** After `ENTRIES_MIN` entries, `pushed + missed` is a little lower, because both fade. */
const FADED_ENTRIES_MIN = ENTRIES_MIN * 0.9
/** Pushes become healthy only if at least this many came during their trial. */
export const TRIAL_PUSHES = ENTRIES_MIN
/**
 * Of the 20 newest pushes (`kept`), if 3 or more were not understood (`tooMany`), pushes become lossy. If at most 1 was not understood (`few`), they
 * may become healthy.
 */
const NEWEST = { kept: 20, tooMany: 3, few: 1 }
const UNDERSTOOD = '.'
const MISREAD = 'x'
/** Above this estimated loss pushes become lossy. They may become healthy only below `HEALTHY_BELOW`, so that the state does not flicker. */
export const LOSSY_ABOVE = 0.12
const HEALTHY_BELOW = 0.08
/** Without entries, the estimated loss is 1/20. */
const PRIOR = { missed: 1, entries: 20 }
/**
 * Pushes count as silent if chance alone would give the same evidence with a lower probability than this. Each gap between pushes that is
 * longer than the grace period may cause a false alarm. With 30 such gaps a day, 30 * 365 * 1e-4 makes one false alarm a year.
 */
const CHANCE_MAX = 1e-4
/** `isSilence` assumes at least this loss: losses are not independent, because the carrier may never push some parcels. */
const LOSS_MIN = 0.02
/** Pushes count as silent only if at least this many entries lack a push. */
const FOUND_MIN = 2
/** The probability that an hour is unusual, such as on a holiday. Then no push is expected. */
const UNUSUAL = 0.01
/** In an unusual hour, polls find only this share of the usual entries. So each entry that polls find makes an unusual hour less probable. */
const UNUSUAL_FIND = 0.25
/** The least time of a trial after pushes were lossy or silent. */
const PROBATION_MS = HOUR_MS / 2
/** Each day, `byHour` and `days` are multiplied by this. */
const DAY_FADE = 0.8

/** Estimates the share of entries whose push is lost. */
export function estimatePushLoss({ pushed, missed }: PushChannel): number {
  return (missed + PRIOR.missed) / (pushed + missed + PRIOR.entries)
}

/**
 * Returns how many entries since the last push only polls have reported, for operators. `silence.found` includes entries whose grace period was
 * not over; `missedSincePush` does not.
 */
export function unpushedSinceLast({ missedSincePush, silence }: PushChannel): number {
  return Math.max(missedSincePush, silence?.found ?? 0)
}

/** `count`: how many pushes `newest` has. `misread`: how many of them were not understood. */
export function newestPushes({ newest }: Pick<PushChannel, 'newest'>): { readonly count: number; readonly misread: number } {
  return { count: newest.length, misread: newest.split(MISREAD).length - 1 }
}

/** Whether pushes are unreliable, because too many of the newest ones were not understood. */
export function areMisread({ newest, health }: Pick<PushChannel, 'newest' | 'health'>): boolean {
  return newestPushes({ newest }).misread > (health === 'lossy' ? NEWEST.few : NEWEST.tooMany - 1)
}

export interface Probation extends Pick<Trial, 'sinceMs' | 'pushes'> {
  /**
   * The earliest time at which pushes can become healthy, if `TRIAL_PUSHES` of them have come. Null: not known, because the carrier has not
   * answered a poll since the trial began.
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
 * Corrects the push channel after the clock was put back, so that no time is in the future. A last push in the future would seem newer than all
 * entries, and no silence would be noticed.
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

/** Returns the channel after `count` pushes that came at about the same time. Pushes of entries that polls have reported count too. */
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

/** Returns the channel after an answered poll. */
export function afterPoll(channel: PushChannel, askedAtMs: number): PushChannel {
  const { trial } = channel
  if (trial === null || trial.polledAtMs !== null || askedAtMs < trial.sinceMs) return channel
  return { ...channel, trial: { ...trial, polledAtMs: askedAtMs } }
}

/** Makes the channel healthy if its trial is over. */
export function afterTrial(channel: PushChannel, { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number }): PushChannel {
  const probation = probationOf(channel, graceMs)
  if (probation === null || probation.untilMs === null || probation.untilMs > nowMs || probation.pushes < TRIAL_PUSHES) return channel
  return { ...channel, health: 'healthy', trial: null }
}

/** Call it for each entry that only a poll has reported, when the entry's grace period is over. */
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

/** `found`: how many entries after the last push only polls have reported. */
export interface UnpushedEntries {
  readonly found: number
  /** How many of the found entries happened up to `settledToMs`. */
  readonly overdue: number
  /** One grace period ago. Pushes of events up to this time should have arrived by now. */
  readonly settledToMs: number
  readonly nowMs: number
}

/** Makes the channel silent if the entries without a push prove a silence, even before they all count as missed. */
export function afterUnpushedEntries(channel: PushChannel, unpushed: UnpushedEntries): PushChannel {
  return channel.health !== 'silent' && channel.lastPushAtMs !== null && isSilence(channel, unpushed)
    ? silenced(channel, { ...unpushed, loss: estimatePushLoss(channel) })
    : channel
}

/**
 * Whether pushes are silent: without a silence, the probability of the evidence would be below `CHANCE_MAX`. It is the product of two
 * probabilities. `loss ** overdue`: the pushes of all overdue entries were lost. `noneCame`: no other push came, by chance (first term) or because
 * the hour is unusual (second term).
 *
 * Example: 5 pushes were expected and 2 entries are overdue, with a loss of 2 %. (e^-5 + 0.01 * 0.25^2) * 0.02^2 = 0.000003: a silence.
 */
function isSilence(channel: PushChannel, { found, overdue, settledToMs }: Omit<UnpushedEntries, 'nowMs'>): boolean {
  if (found < FOUND_MIN) return false
  const loss = Math.min(0.9, Math.max(LOSS_MIN, estimatePushLoss(channel)))
  // While pushes are not healthy, polls keep their full cadence and find all entries, even in an unusual hour. Then only the losses are evidence.
  const noneCame =
    channel.health === 'healthy' ? Math.exp(-expectedSinceLastPush(channel, settledToMs)) + UNUSUAL * UNUSUAL_FIND ** found : 1
  return Math.min(1, noneCame) * loss ** overdue < CHANCE_MAX
}

/** `missed` no longer includes the entries of the silence, because they do not show how many pushes are usually lost. */
function silenced(
  channel: PushChannel,
  { found, nowMs, loss }: Pick<SilenceEvidence, 'found' | 'loss'> & { readonly nowMs: number },
): PushChannel {
  const missed = Math.max(0, channel.missed - channel.missedSincePush)
  const silence = { sinceMs: channel.lastPushAtMs ?? nowMs, noticedAtMs: nowMs, found, loss }
  return { ...channel, health: 'silent', missed, silence, trial: null }
}

/** Returns how many pushes came on average, on earlier days, in the hours from the last push to `toMs`. */
function expectedSinceLastPush({ lastPushAtMs, byHour, days }: PushChannel, toMs: number): number {
  if (lastPushAtMs === null || days === 0) return 0
  let expected = 0
  for (let atMs = Math.max(lastPushAtMs, toMs - DAY_MS); atMs < toMs; ) {
    const endMs = Math.min(toMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS)
    expected += (((byHour[hourOfDay(atMs)] ?? 0) / days) * (endMs - atMs)) / HOUR_MS
    atMs = endMs
  }
  return expected
}

/** Adds entries to the counts. Each entry makes the counts of earlier entries fade a little. */
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

/** Makes the channel lossy if too many pushes are lost or not understood. Otherwise begins a trial, unless pushes are healthy already. */
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
