import { formatDuration } from '../../core/domain/amounts.ts'
import { DAY_MS, wallClockMs } from '../../core/domain/calendar.ts'

/** A rule of the config (DOMAIN 9.1). A list that is null allows any value. */
export interface WatchdogRule {
  readonly name: string
  readonly when: {
    readonly status: readonly string[] | null
    readonly detailedStatus: readonly string[] | null
    readonly distributionType: readonly string[] | null
    /** Labels of the order: `NAME`, or `NAME=VALUE`. */
    readonly label: readonly string[] | null
  }
  /** Null, and `notBy` too: the parcel is stalled at once. */
  readonly notWithinMs: number | null
  /** Written as `HH:MM`. */
  readonly notBy: string | null
  /** The statuses that end the watch; null: any later entry does. */
  readonly until: readonly string[] | null
  readonly past: boolean
}

/** The rules in effect, and the zone of their times of day. */
export interface WatchdogRules {
  readonly rules: readonly WatchdogRule[]
  readonly zone: string
}

/** The longest time for which rules are tried. */
export const TRIED_SINCE_MS_MAX = 366 * 86_400_000

/** Says of what a rule finds a parcel stalled, such as `Ingested, and nothing within 48h`, or `Created, from then until DeliverySucceeded`. */
export function describeRule({ when, notWithinMs, notBy, until }: WatchdogRule): string {
  const lists = [when.status, when.detailedStatus, when.distributionType, when.label]
  const begins = lists.flatMap((list) => (list === null ? [] : list.join(' or '))).join(', ')
  const isEndless = until?.length === 0
  const ends = until === null ? 'nothing' : `no ${until.join(' or ')}`
  if (notWithinMs !== null) {
    const time = formatDuration(notWithinMs)
    return `${begins}, and ${isEndless ? `${time} have passed` : `${ends} within ${time}`}`
  }
  if (notBy !== null) return `${begins}, and ${isEndless ? `${notBy} has come` : `${ends} by ${notBy}`}`
  return `${begins}, from then ${isEndless ? 'on' : `until ${until?.join(' or ') ?? 'any later entry'}`}`
}

/** When each rule was first loaded as it is now, by name, epoch milliseconds. */
export type FirstLoads = ReadonlyMap<string, number>

/** What rules look at of an entry. `learntAtMs`: when the relay learnt of it; null: not known. */
export interface WatchedEntry {
  readonly status: string
  readonly detailedStatus: string
  readonly atMs: number
  readonly learntAtMs: number | null
}

/** What rules look at of a parcel. `labels`: see `filterableLabels`. */
export interface WatchedParcel {
  readonly entries: readonly WatchedEntry[]
  readonly distributionType: string
  readonly labels: readonly string[]
}

/** From when on a parcel is stalled by a rule. `learntAtMs`: when the relay learnt of the entry with which the watch began. */
export interface Deadline {
  readonly sinceMs: number
  readonly learntAtMs: number
}

const SECOND_MS = 1000
const secondOf = (atMs: number) => Math.floor(atMs / SECOND_MS)

/** When an entry counts from: by the earlier of both clocks (DOMAIN 6.1), to the second, because a push and a poll may differ within it. */
function countsFromMs({ atMs, learntAtMs }: Pick<WatchedEntry, 'atMs' | 'learntAtMs'>): number {
  return secondOf(Math.min(atMs, learntAtMs ?? atMs)) * SECOND_MS
}

/**
 * Returns when a parcel is, was or will be stalled by a rule; null: the rule does not watch it now (DOMAIN 9.2). This is a pure function of the
 * history and its learnt times: the order in which the entries came, or are given, does not matter.
 */
export function deadlineOf(rule: WatchdogRule, zone: string, parcel: WatchedParcel): Deadline | null {
  const { distributionType, label } = rule.when
  if (distributionType !== null && !distributionType.includes(parcel.distributionType)) return null
  if (label !== null && !label.some((one) => parcel.labels.includes(one))) return null
  const { until } = rule
  let endedSecond = Number.NEGATIVE_INFINITY
  const begun: WatchedEntry[] = []
  for (const entry of parcel.entries) {
    if (begins(rule, entry)) begun.push(entry)
    else if (until === null || until.includes(entry.status)) endedSecond = Math.max(endedSecond, secondOf(entry.atMs))
  }
  const seconds = begun.map(({ atMs }) => secondOf(atMs)).filter((second) => second > endedSecond)
  if (seconds.length === 0) return null
  // What a rule without a time tells is not told again while it lasts, so the first entry counts.
  const isFirst = isAtOnce(rule) && until !== null
  const second = seconds.reduce((one, other) => (isFirst ? Math.min(one, other) : Math.max(one, other)))
  const first = begun.filter(({ atMs }) => secondOf(atMs) === second)
  const sinceMs = dueMs(rule, zone, Math.min(...first.map(countsFromMs)))
  return { sinceMs, learntAtMs: Math.min(...first.map(({ atMs, learntAtMs }) => learntAtMs ?? atMs)) }
}

function begins({ when: { status, detailedStatus } }: WatchdogRule, entry: Pick<WatchedEntry, 'status' | 'detailedStatus'>): boolean {
  return (status === null || status.includes(entry.status)) && (detailedStatus === null || detailedStatus.includes(entry.detailedStatus))
}

function isAtOnce({ notWithinMs, notBy }: WatchdogRule): boolean {
  return notWithinMs === null && notBy === null
}

function dueMs({ notWithinMs, notBy }: WatchdogRule, zone: string, fromMs: number): number {
  if (notBy !== null) return nextTimeOfDay(notBy, zone, fromMs)
  return fromMs + (notWithinMs ?? 0)
}

/**
 * Returns the earliest time at which an entry can make its parcel stalled; null: no rule watches such an entry. It looks at nothing but the entry, so
 * that recording loads nothing: the parcel may turn out not to be stalled then.
 */
export function earliestDueMs({ rules, zone }: WatchdogRules, entry: WatchedEntry): number | null {
  let earliest: number | null = null
  for (const rule of rules) {
    if (!begins(rule, entry)) continue
    const due = dueMs(rule, zone, countsFromMs(entry))
    if (earliest === null || due < earliest) earliest = due
  }
  return earliest
}

/** Returns when a clock in the zone next shows a time of day (`HH:MM`), after `fromMs`. */
export function nextTimeOfDay(time: string, zone: string, fromMs: number): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const wall = wallClockMs(zone, fromMs)
  const today = Math.floor(wall / DAY_MS) * DAY_MS + (hours * 60 + minutes) * 60_000
  const shown = today > wall ? today : today + DAY_MS
  const first = shown - (wall - secondOf(fromMs) * SECOND_MS)
  // The offset may change until then. A time that the clock skips is taken by the offset before the change.
  const second = shown - (wallClockMs(zone, first) - first)
  return second === first || wallClockMs(zone, second) === shown ? second : first
}

/** A breach that was told. `endedAtMs` null: it lasts. */
export interface KnownBreach {
  readonly id: number
  readonly rule: string
  readonly sinceMs: number
  readonly toldAtMs: number
  readonly endedAtMs: number | null
}

/** What is to be done about a parcel. */
export interface Verdict {
  readonly stalled: readonly { readonly rule: string; readonly sinceMs: number; readonly checked: boolean }[]
  /** `observation`: what the relay learnt ended it. `rule`: the rule was changed or removed. */
  readonly recovered: readonly { readonly breach: KnownBreach; readonly because: 'observation' | 'rule' }[]
  /** Whether the carrier must be asked before the parcel is told to be stalled. */
  readonly mustAsk: boolean
  /** When to look again; null: not before the parcel changes. */
  readonly nextMs: number | null
  /** Whether a told breach lasts. */
  readonly isOpen: boolean
}

export interface Look {
  readonly nowMs: number
  readonly loads: FirstLoads
  /** When the carrier last answered a poll of the parcel; null: never. */
  readonly checkedAtMs: number | null
  /** Whether to tell what the carrier could not be asked about. */
  readonly mayTellUnchecked: boolean
}

/** Judges a parcel (DOMAIN 9.3). `known`: the breaches that were told of it. */
export function judge({ rules, zone }: WatchdogRules, parcel: WatchedParcel, known: readonly KnownBreach[], look: Look): Verdict {
  const { nowMs, loads, checkedAtMs, mayTellUnchecked } = look
  const stalled: Verdict['stalled'][number][] = []
  const lasting = new Set<KnownBreach>()
  let nextMs: number | null = null
  let mustAsk = false
  for (const rule of rules) {
    const deadline = deadlineOf(rule, zone, parcel)
    if (deadline === null) continue
    const { sinceMs, learntAtMs } = deadline
    const told = known.find((breach) => breach.rule === rule.name && breach.sinceMs === sinceMs)
    const isOfPast = !rule.past && sinceMs <= (loads.get(rule.name) ?? nowMs)
    if (told !== undefined || isOfPast) {
      if (told?.endedAtMs === null && !isOfPast) lasting.add(told)
    } else if (sinceMs > nowMs) nextMs = Math.min(nextMs ?? sinceMs, sinceMs)
    else {
      const checked = checkedAtMs !== null && checkedAtMs >= Math.max(sinceMs, Math.min(learntAtMs, nowMs))
      if (checked || mayTellUnchecked) stalled.push({ rule: rule.name, sinceMs, checked })
      else mustAsk = true
    }
  }
  const recovered = known
    .filter((breach) => breach.endedAtMs === null && !lasting.has(breach))
    .map((breach) => ({ breach, because: becauseOf(breach, { rules, zone }, parcel, loads) }))
  return { stalled, recovered, mustAsk, nextMs, isOpen: lasting.size > 0 || stalled.length > 0 }
}

/**
 * Why a breach is over. One that was told before its rule was loaded as it is was told by another: it is over for the rule, unless the rule of now found it
 * too, in what was known at its load.
 */
function becauseOf(
  { rule: name, sinceMs, toldAtMs }: KnownBreach,
  { rules, zone }: WatchdogRules,
  parcel: WatchedParcel,
  loads: FirstLoads,
): 'observation' | 'rule' {
  const rule = rules.find((one) => one.name === name)
  const loadedAtMs = loads.get(name)
  if (rule === undefined || (!rule.past && sinceMs <= (loadedAtMs ?? sinceMs))) return 'rule'
  if (loadedAtMs === undefined || loadedAtMs <= toldAtMs) return 'observation'
  const known = parcel.entries.filter(({ atMs, learntAtMs }) => (learntAtMs ?? atMs) <= loadedAtMs)
  return deadlineOf(rule, zone, { ...parcel, entries: known })?.sinceMs === sinceMs ? 'observation' : 'rule'
}

/** What the relay can see of parcels. `none`: it is deaf, so that a silent parcel says nothing (DOMAIN 9.5). */
export type Sight = 'polls' | 'pushes' | 'none'

export interface Senses {
  readonly nowMs: number
  /** Since when the carrier answers no poll; null: it answers. */
  readonly pollsFailSinceMs: number | null
  readonly pushesAreHealthy: boolean
  readonly lastPushAtMs: number | null
}

/** Pushes alone are believed when polls have failed for this long. An outage may begin with either. */
const PUSHES_ALONE_MS = 3_600_000
/** Pushes must have come this lately. */
const PUSHED_WITHIN_MS = 15 * 60_000

export function sightOf({ nowMs, pollsFailSinceMs, pushesAreHealthy, lastPushAtMs }: Senses): Sight {
  if (pollsFailSinceMs === null) return 'polls'
  const isPushed = pushesAreHealthy && lastPushAtMs !== null && nowMs - lastPushAtMs <= PUSHED_WITHIN_MS
  return isPushed && nowMs - pollsFailSinceMs >= PUSHES_ALONE_MS ? 'pushes' : 'none'
}

/** At most this many of the newest entries are replayed: each asks for the whole history before it. */
const REPLAYED_MAX = 200

/** Returns what a rule would have told of a parcel as the relay learnt of its entries. `endedAtMs` null: it would last at `nowMs`. */
export function replay(
  rule: WatchdogRule,
  zone: string,
  parcel: WatchedParcel,
  nowMs: number,
): readonly { readonly sinceMs: number; readonly endedAtMs: number | null }[] {
  const learntMs = ({ atMs, learntAtMs }: WatchedEntry) => learntAtMs ?? atMs
  const entries = parcel.entries.toSorted((a, b) => learntMs(a) - learntMs(b))
  const times = [...new Set(entries.map(learntMs))].slice(-REPLAYED_MAX)
  const told: { readonly sinceMs: number; endedAtMs: number | null }[] = []
  for (const [nth, fromMs] of times.entries()) {
    const untilMs = times[nth + 1] ?? nowMs
    const deadline = deadlineOf(rule, zone, { ...parcel, entries: entries.filter((entry) => learntMs(entry) <= fromMs) })
    const last = told.at(-1)
    if (last !== undefined && last.endedAtMs === null && last.sinceMs !== deadline?.sinceMs) last.endedAtMs = fromMs
    const isTold = deadline !== null && deadline.sinceMs <= untilMs && !told.some(({ sinceMs }) => sinceMs === deadline.sinceMs)
    if (isTold) told.push({ sinceMs: deadline.sinceMs, endedAtMs: null })
  }
  return told
}
