import type { Lifecycle, Scan } from './lifecycles.ts'

const HOUR_MS = 3_600_000
/** Hours simulated after the last scan. Nothing new happens then, and there are enough calls to find the rest. */
const HOURS_AFTER = 24
/** Probabilities below this count as 0. */
const CHANCE_MIN = 1e-6

/** The transitions of parcels between kinds, hour by hour. A kind is a status at a position in the history. */
export interface Ways {
  readonly kinds: number
  readonly hours: number
  /** By kind: the position of its entry, and whether no entry ever followed. */
  readonly places: readonly number[]
  readonly ends: readonly boolean[]
  /** By kind and hour: the probabilities of moving to other kinds within that hour. */
  readonly moves: readonly (readonly (readonly Shown[])[])[]
  /** By hour and kind: number of new parcels. */
  readonly births: readonly Float64Array[]
}

export interface Shown {
  readonly kind: number
  readonly chance: number
}

/** The expected future of a parcel after a poll, hour by hour. */
export interface Waits {
  /** Expected total hours that entries will have been unknown by a later hour. */
  unknownHours(kind: number, fromHour: number, toHour: number): number
  /** What a poll at `toHour` will show. */
  shown(kind: number, fromHour: number, toHour: number): readonly Shown[]
}

/** Estimates the transitions from the lifecycles. */
export function learnWays(lifecycles: readonly Lifecycle[]): Ways {
  const startMs = Math.floor(Math.min(...lifecycles.map(({ scans }) => scans[0]?.atMs ?? Number.POSITIVE_INFINITY)) / HOUR_MS) * HOUR_MS
  const hourOf = (atMs: number) => (atMs - startMs) / HOUR_MS
  const hours = Math.ceil(hourOf(Math.max(...lifecycles.map(({ scans }) => scans.at(-1)?.atMs ?? 0)))) + HOURS_AFTER
  const names = [...new Set(lifecycles.flatMap(({ scans }) => scans.map(nameOf)))]
  const kinds = new Map(names.map((name, kind) => [name, kind]))
  const byHour = () => Array.from({ length: hours }, () => new Float64Array(names.length))
  const births = byHour()
  const waited = byHour()
  const went = names.map(byHour)
  for (const { scans } of lifecycles) {
    for (const [place, scan] of scans.entries()) {
      const kind = kinds.get(nameOf(scan, place)) ?? 0
      const fromHour = hourOf(scan.atMs)
      if (place === 0) add(births[Math.floor(fromHour)], kind, 1)
      const next = scans[place + 1]
      if (next === undefined) continue
      const toHour = hourOf(next.atMs)
      for (let hour = Math.floor(fromHour); hour < toHour; hour++) {
        add(waited[hour], kind, Math.min(toHour, hour + 1) - Math.max(fromHour, hour))
      }
      add(went[kind]?.[Math.floor(toHour)], kinds.get(nameOf(next, place + 1)) ?? 0, 1)
    }
  }
  return {
    kinds: names.length,
    hours,
    places: names.map((name) => Number(name.slice(name.lastIndexOf('#') + 1))),
    ends: went.map((counts) => counts.every((to) => to.every((count) => count === 0))),
    moves: went.map((counts, kind) => counts.map((to, hour) => chances(to, waited[hour]?.[kind] ?? 0))),
    births,
  }
}

function nameOf({ status }: Scan, place: number): string {
  return `${status}#${place}`
}

function add(to: Float64Array | undefined, at: number, value: number): void {
  if (to !== undefined) to[at] = (to[at] ?? 0) + value
}

function chances(to: Float64Array, waitedHours: number): readonly Shown[] {
  const scans = to.reduce((sum, count) => sum + count, 0)
  if (scans === 0 || waitedHours === 0) return []
  const any = 1 - Math.exp(-scans / waitedHours)
  return [...to].flatMap((count, kind) => (count === 0 ? [] : [{ kind, chance: (any * count) / scans }]))
}

/** Computes the future of every kind from every hour. */
export function foresee({ kinds, hours, places, moves }: Ways): Waits {
  const waits = Array.from({ length: kinds }, (_, kind) =>
    Array.from({ length: hours }, (__, fromHour) => {
      const steps: { readonly unknownHours: number; readonly shown: readonly Shown[] }[] = []
      let shown: readonly Shown[] = [{ kind, chance: 1 }]
      let [unknown, unknownHours] = [0, 0]
      for (let hour = fromHour; hour < hours; hour++) {
        shown = goOn(shown, hour, moves)
        const then = shown.reduce((sum, one) => sum + one.chance * ((places[one.kind] ?? 0) - (places[kind] ?? 0)), 0)
        unknownHours += (unknown + then) / 2
        unknown = then
        steps.push({ unknownHours, shown })
      }
      return steps
    }),
  )
  const step = (kind: number, fromHour: number, toHour: number) => waits[kind]?.[fromHour]?.[toHour - fromHour - 1]
  return {
    unknownHours: (kind, fromHour, toHour) => step(kind, fromHour, toHour)?.unknownHours ?? 0,
    shown: (kind, fromHour, toHour) => step(kind, fromHour, toHour)?.shown ?? [],
  }
}

function goOn(shown: readonly Shown[], hour: number, moves: Ways['moves']): readonly Shown[] {
  const next = new Map<number, number>()
  for (const { kind, chance } of shown) {
    let stays = chance
    for (const move of moves[kind]?.[hour] ?? []) {
      stays -= chance * move.chance
      next.set(move.kind, (next.get(move.kind) ?? 0) + chance * move.chance)
    }
    next.set(kind, (next.get(kind) ?? 0) + stays)
  }
  return [...next].flatMap(([kind, chance]) => (chance < CHANCE_MIN ? [] : [{ kind, chance }]))
}
