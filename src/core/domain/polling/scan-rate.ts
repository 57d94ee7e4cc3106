import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import { countsFromMs, type LatestEntry } from '../history/parcel-state.ts'
import { notAhead } from '../instant.ts'

/** The status of a parcel whose delivery has succeeded. */
export const FINISHED = 'DeliverySucceeded'

export interface WaitingHours {
  /** The number of scans in each hour of the week, from Monday 00:00 UTC. Old scans weigh less. */
  readonly scans: readonly number[]
  /** How long parcels waited in each hour of the week, summed over all parcels. Old waits weigh less. The scan rate is scans / hours. */
  readonly hours: readonly number[]
}

/**
 * What is learnt about the hours at which the carrier scans parcels. It fades with a half-life of four weeks.
 *
 * Each wait counts twice: for the parcel's status, and for `status#n`, where n is the number of the parcel's latest entry. The wait
 * after the third scan at a terminal, for example, differs from the wait after the fourth.
 */
export interface ScanRate {
  readonly asOfMs: number
  readonly kinds: Readonly<Record<string, WaitingHours>>
  /** How many complete histories had this status as their nth entry, by `status#n`. The counts fade. */
  readonly places: Readonly<Record<string, number>>
}

export type ScanSample = Wait | NthEntry

/** An entry of a complete history. Only polls show complete histories. `entryCount`: the number of the entry, counted from 1. */
export interface NthEntry {
  readonly kind: 'place'
  readonly status: string
  readonly entryCount: number
}

/** How long a parcel waited for a scan after an entry. `status` and `entryCount`: the status and the number of that entry, counted from 1. */
export interface Wait {
  readonly kind: 'wait'
  readonly status: string
  readonly entryCount: number
  readonly fromMs: number
  readonly toMs: number
  /** Whether a scan ended the wait. Waits that still go on count too, because long waits would otherwise be too rare among the samples. */
  readonly scanned: boolean
}

/** Scans per hour during a wait. */
export interface HourlyRates {
  /** For each hour of the week. */
  readonly rates: Float64Array
  /** The rates of the scan after the next one; 0: no further scan is expected. */
  readonly followingRates: Float64Array
  readonly meanRate: number
}

export const emptyScanRate: ScanRate = { asOfMs: 0, kinds: {}, places: {} }

const HOUR_MS = 3_600_000
const WEEK_HOURS = 168
/** 1 January 1970 was a Thursday; hours of the week count from Monday. */
const EPOCH_HOUR_OF_WEEK = 72
/** Old samples fade within months, because a carrier's hours change with seasons and contracts. */
const HALF_LIFE_MS = 28 * 24 * HOUR_MS
/** There is a limit because the carrier chooses the statuses. */
const KINDS_MAX = 256
/** Entries with a higher number count as entries with this number. */
const NTH_MAX = 12
const MISSING_MAX = 3
/** Longer waits are ignored, because they say nothing about hours of the week. */
const WAIT_MAX_MS = 14 * 24 * HOUR_MS
/** Separates the status from the number in `status#n`. A status that contains this character is not learnt. */
const NTH_MARK = '#'
/** A status with fewer scans gets no estimate. */
const SCANS_MIN = 30
/**
 * An estimate begins as if this many scans had been seen at the rate of a larger group of parcels or hours. So a few scans at an unusual hour,
 * which may be chance, change it little.
 */
const PRIOR_SCANS = 16

/** Returns the statuses with enough scans, each with its hours of waiting and its scans per hour. */
export function statusShares(scanRate: ScanRate): readonly StatusShare[] {
  const known = shares.get(scanRate)
  if (known !== undefined) return known
  const made = Object.entries(scanRate.kinds).flatMap(([kind, seen]): StatusShare[] => {
    const scans = sum(seen.scans)
    const hours = sum(seen.hours)
    return kind.includes(NTH_MARK) || scans < SCANS_MIN || hours === 0 ? [] : [{ status: kind, hours, meanRate: scans / hours }]
  })
  shares.set(scanRate, made)
  return made
}

export interface StatusShare {
  readonly status: string
  readonly hours: number
  readonly meanRate: number
}

const shares = new WeakMap<ScanRate, readonly StatusShare[]>()

/** Hour 0 begins on Monday at 00:00 UTC. */
export function hourOfWeek(atMs: number): number {
  return (((Math.floor(atMs / HOUR_MS) + EPOCH_HOUR_OF_WEEK) % WEEK_HOURS) + WEEK_HOURS) % WEEK_HOURS
}

/** Fades a scan rate by the time that has passed, then adds samples. The order of the samples does not matter. */
export function learnScanRate(scanRate: ScanRate, scanSamples: readonly ScanSample[], nowMs: number): ScanRate {
  const fade = scanRate.asOfMs === 0 ? 1 : 2 ** (-Math.max(0, nowMs - scanRate.asOfMs) / HALF_LIFE_MS)
  const kinds = new Map(
    Object.entries(scanRate.kinds).map(([kind, { scans, hours }]) => [
      kind,
      { scans: scans.map((value) => value * fade), hours: hours.map((value) => value * fade) },
    ]),
  )
  const places = new Map(Object.entries(scanRate.places).map(([kind, count]) => [kind, count * fade]))
  for (const sample of scanSamples) {
    if (sample.status.includes(NTH_MARK)) continue
    const kind = kindOf(sample.status, sample.entryCount)
    if (sample.kind === 'place') {
      if (places.has(kind) || places.size < KINDS_MAX) places.set(kind, (places.get(kind) ?? 0) + 1)
      continue
    }
    if (sample.toMs <= sample.fromMs || sample.toMs - sample.fromMs > WAIT_MAX_MS) continue
    for (const one of [sample.status, kind]) {
      const known = kinds.get(one) ?? { scans: zeros(), hours: zeros() }
      if (!kinds.has(one) && kinds.size >= KINDS_MAX) continue
      kinds.set(one, known)
      addWait(known, sample)
    }
  }
  return { asOfMs: nowMs, kinds: Object.fromEntries(kinds), places: Object.fromEntries(places) }
}

/**
 * Estimates how many entries are missing before a parcel's latest entry, which is the known entry with number `entryCount`. Entries are probably
 * missing if this status has a higher number in many complete histories. `lostExpected`: how many entries a parcel lacks on average.
 */
export function missingBefore(scanRate: ScanRate, status: string, entryCount: number, lostExpected: number): number {
  const seenAt = (nth: number) => {
    const kind = kindOf(status, nth)
    return 1 + (Object.hasOwn(scanRate.places, kind) ? (scanRate.places[kind] ?? 0) : 0)
  }
  let total = seenAt(entryCount)
  let missing = 0
  let odds = 1
  for (let lost = 1; lost <= MISSING_MAX; lost++) {
    odds *= lostExpected / lost
    const weight = odds * seenAt(entryCount + lost)
    total += weight
    missing += lost * weight
  }
  return missing / total
}

function kindOf(status: string, entryCount: number): string {
  return `${status}${NTH_MARK}${Math.min(entryCount, NTH_MAX)}`
}

function addWait(to: { scans: number[]; hours: number[] }, { fromMs, toMs, scanned }: Wait): void {
  for (let atMs = fromMs; atMs < toMs; ) {
    const endMs = Math.min(toMs, (Math.floor(atMs / HOUR_MS) + 1) * HOUR_MS)
    const hour = hourOfWeek(atMs)
    to.hours[hour] = (to.hours[hour] ?? 0) + (endMs - atMs) / HOUR_MS
    atMs = endMs
  }
  if (!scanned) return
  const last = hourOfWeek(toMs)
  to.scans[last] = (to.scans[last] ?? 0) + 1
}

/** Rates are cached, because every push and poll needs them, and the scan rate changes rarely. */
const cachedRates = new WeakMap<ScanRate, Map<string, HourlyRates | null>>()

/**
 * Returns the rates for a parcel whose latest entry has this status and this number; null: too little is known.
 *
 * There are four estimates, from the roughest to the finest: the status over all hours, the status by hour of the day, `status#n` by hour of
 * the day, `status#n` by hour of the week. An estimate with few scans stays close to the rougher one before it.
 */
export function hourlyRatesOf(scanRate: ScanRate, status: string, entryCount: number): HourlyRates | null {
  const kind = kindOf(status, entryCount)
  return remembered(scanRate, kind, () => {
    const rates = estimate(waitingHours(scanRate, status), waitingHours(scanRate, kind))
    return rates === null ? null : { ...rates, followingRates: followingRates(scanRate, entryCount + 1) }
  })
}

function remembered(scanRate: ScanRate, kind: string, make: () => HourlyRates | null): HourlyRates | null {
  const known = cachedRates.get(scanRate) ?? new Map<string, HourlyRates | null>()
  cachedRates.set(scanRate, known)
  const before = known.get(kind)
  if (before !== undefined) return before
  const made = make()
  known.set(kind, made)
  return made
}

/** Returns the rates for a parcel with `nth` entries whose status is not known; null: too little is known. */
export function hourlyRatesAt(scanRate: ScanRate, nth: number): HourlyRates | null {
  return remembered(scanRate, kindOf('', nth), () => {
    const rates = followingRates(scanRate, nth)
    const meanRate = sum([...rates]) / WEEK_HOURS
    return meanRate === 0 ? null : { meanRate, rates, followingRates: followingRates(scanRate, nth + 1) }
  })
}

/**
 * Returns the rates after the nth entry, averaged over the statuses that it may have. Statuses that are frequent in complete histories weigh
 * more.
 */
function followingRates(scanRate: ScanRate, nth: number): Float64Array {
  const mixed = new Float64Array(WEEK_HOURS)
  const there = Object.entries(scanRate.places).filter(([kind]) => kind.endsWith(kindOf('', nth)))
  const total = sum(there.map(([, count]) => count))
  for (const [kind, count] of there) {
    const status = kind.slice(0, kind.lastIndexOf(NTH_MARK))
    const { rates } = estimate(waitingHours(scanRate, status), waitingHours(scanRate, kind)) ?? {}
    if (rates !== undefined)
      for (let hour = 0; hour < WEEK_HOURS; hour++) mixed[hour] = (mixed[hour] ?? 0) + ((rates[hour] ?? 0) * count) / total
  }
  return mixed
}

function waitingHours(scanRate: ScanRate, kind: string): WaitingHours | undefined {
  // The carrier chooses the status. So `hasOwn` keeps a status such as `constructor` from finding an inherited property.
  return Object.hasOwn(scanRate.kinds, kind) ? scanRate.kinds[kind] : undefined
}

function estimate(ofStatus: WaitingHours | undefined, ofNth: WaitingHours | undefined): Omit<HourlyRates, 'followingRates'> | null {
  if (ofStatus === undefined) return null
  const scans = sum(ofStatus.scans)
  if (scans < SCANS_MIN) return null
  const meanRate = scans / Math.max(sum(ofStatus.hours), 1 / 60)
  const byDay = leaning(byHourOfDay(ofStatus), () => meanRate)
  const nthByDay = leaning(byHourOfDay(ofNth), (hour) => byDay[hour] ?? meanRate)
  const rates = leaning(ofNth, (hour) => nthByDay[hour % 24] ?? meanRate)
  return { meanRate, rates: Float64Array.from({ length: WEEK_HOURS }, (_, hour) => rates[hour] ?? nthByDay[hour % 24] ?? meanRate) }
}

/** Returns scans per hour: the seen scans together with `PRIOR_SCANS` scans at the rougher rate. */
function leaning(seen: WaitingHours | undefined, rougher: (hour: number) => number): readonly number[] {
  return (seen?.scans ?? []).map((scans, hour) => {
    const rough = Math.max(rougher(hour), 1e-6)
    return (scans + PRIOR_SCANS) / ((seen?.hours[hour] ?? 0) + PRIOR_SCANS / rough)
  })
}

function byHourOfDay(seen: WaitingHours | undefined): WaitingHours {
  return { scans: folded(seen?.scans ?? []), hours: folded(seen?.hours ?? []) }
}

/** Sums the values by hour of the day. */
function folded(week: readonly number[]): number[] {
  const day = Array.from({ length: 24 }, () => 0)
  for (const [hour, value] of week.entries()) day[hour % 24] = (day[hour % 24] ?? 0) + value
  return day
}

function zeros(): number[] {
  return Array.from({ length: WEEK_HOURS }, () => 0)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The state of a parcel before an observation. */
interface KnownBefore {
  readonly latest: LatestEntry | null
  readonly entryCount: number
  readonly checkedAtMs: number | null
  readonly lastSeenAtMs: number | null
}

interface LearntAt {
  readonly nowMs: number
  /** The last sequence before the observation. A new entry has a greater one. */
  readonly knownTo: number
}

/**
 * Returns the samples of the scan rate that an observation gives. `entries`: for a poll the whole history, for a push the entries that it may
 * have changed. An entry that is older than a known one should split an earlier wait, but this is too rare to matter. The time of an entry
 * counts as no later than the time at which the relay learnt of it (DOMAIN 6.1).
 */
export function scanSamplesOf(
  before: KnownBefore,
  observation: PushObservation | PollObservation,
  entries: readonly Entry[],
  { nowMs, knownTo }: LearntAt,
): readonly ScanSample[] {
  const oldestFirst = entries.length < 2 ? entries : entries.toSorted((a, b) => a.atMs - b.atMs)
  const newer = oldestFirst.filter(({ atMs }) => before.latest === null || atMs > before.latest.atMs)
  // The relay learnt of a known entry at the last push or poll about the parcel, or earlier.
  const countsMs = ({ atMs, sequence }: Entry) => Math.min(atMs, sequence > knownTo ? nowMs : (before.lastSeenAtMs ?? nowMs))
  const timed = (all: readonly Entry[]) => all.map((entry) => ({ status: entry.status, atMs: countsMs(entry) }))
  return observation.kind === 'push'
    ? waits(before, timed(newer), null)
    : [...waits(before, timed(newer), notAhead(observation.askedAtMs, nowMs)), ...nthEntries(before, timed(oldestFirst))]
}

/** An entry's status and the time that counts for it (DOMAIN 6.1). */
interface Timed {
  readonly status: string
  readonly atMs: number
}

/** Returns the waits that ended with a new entry. For a poll, also returns the wait that still goes on. */
function waits(before: KnownBefore, newer: readonly Timed[], askedAtMs: number | null): readonly ScanSample[] {
  const { latest, entryCount, checkedAtMs } = before
  const chain = latest === null ? newer : [{ status: latest.status, atMs: countsFromMs(latest) }, ...newer]
  const firstNth = latest === null ? 1 : entryCount
  return chain.flatMap(({ status, atMs }, at): ScanSample[] => {
    const next = chain[at + 1]
    const toMs = next?.atMs ?? askedAtMs
    if (toMs === null || status === FINISHED) return []
    // The poll before this observation already gave a sample of the first part of this wait.
    const fromMs = Math.max(atMs, checkedAtMs ?? atMs)
    return [{ kind: 'wait', status, entryCount: firstNth + at, fromMs, toMs, scanned: next !== undefined }]
  })
}

/**
 * Returns the new entries of a poll with their positions in the history. An earlier poll gave the samples of entries before `checkedAtMs`. A
 * push gives no such samples, because it does not show a complete history.
 */
function nthEntries({ checkedAtMs }: KnownBefore, oldestFirst: readonly Timed[]): readonly ScanSample[] {
  return oldestFirst.flatMap(({ status, atMs }, at): ScanSample[] =>
    atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY) ? [{ kind: 'place', status, entryCount: at + 1 }] : [],
  )
}
