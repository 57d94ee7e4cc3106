import type { Lifecycle } from './lifecycles.ts'
import { foresee, learnWays, type Waits, type Ways } from './ways.ts'

const HOUR_MS = 3_600_000
const ROUNDS = 800
/** How much an hour's price rises, in entry hours, when demand is twice the supply of calls. It shrinks from round to round. */
const STEP_HOURS = 0.3

/**
 * A lower bound on the mean staleness of any poller without pushes and with a limited number of calls. That poller knows from the start how
 * parcels of each kind behave and how many will come, but nothing about a parcel before it asks. The bound is a Lagrangian relaxation: each
 * hour has a price per call. For any prices, the cost of the best plan minus the revenue of the available calls is at most what any poller
 * within the limit must bear. The prices rise where plans demand more calls than are available.
 */
export function leastPossibleMeanMs(lifecycles: readonly Lifecycle[], callsPerMinute: number): number {
  const ways = learnWays(lifecycles)
  const waits = foresee(ways)
  const callsAnHour = callsPerMinute * 60
  const prices = new Float64Array(ways.hours)
  let best = 0
  for (let round = 0; round < ROUNDS; round++) {
    const { cost, looks } = planLooks(ways, waits, prices)
    best = Math.max(best, cost - callsAnHour * prices.reduce((sum, price) => sum + price, 0))
    const step = STEP_HOURS / Math.sqrt(1 + round / 20)
    for (let hour = 0; hour < ways.hours; hour++) {
      prices[hour] = Math.max(0, (prices[hour] ?? 0) + step * ((looks[hour] ?? 0) / callsAnHour - 1))
    }
  }
  return (best / lifecycles.reduce((sum, { scans }) => sum + scans.length, 0)) * HOUR_MS
}

interface Plan {
  /** Over all parcels: hours that entries were unknown, plus the price of the polls. */
  readonly cost: number
  /** Polls by hour. */
  readonly looks: Float64Array
}

interface Look {
  readonly cost: number
  readonly hour: number
}

/** Finds the cheapest plan of polls at these prices. The next poll depends only on what the last one showed and on the hour. */
function planLooks(ways: Ways, waits: Waits, prices: Float64Array): Plan {
  const after = bestLooks(ways, waits, prices)
  const looks = new Float64Array(ways.hours)
  // Parcels that a poll shows, by hour and kind. The loop runs forward, because every poll leads to a later one.
  const shown = Array.from({ length: ways.hours + 1 }, () => new Float64Array(ways.kinds))
  let cost = 0
  const follow = (look: Look, kind: number, fromHour: number, parcels: number) => {
    if (look.hour >= ways.hours) return
    looks[look.hour] = (looks[look.hour] ?? 0) + parcels
    const there = shown[look.hour]
    for (const { kind: to, chance } of waits.shown(kind, fromHour, look.hour)) {
      if (there !== undefined) there[to] = (there[to] ?? 0) + parcels * chance
    }
  }
  for (let hour = 0; hour < ways.hours; hour++) {
    for (let kind = 0; kind < ways.kinds; kind++) {
      const born = ways.births[hour]?.[kind] ?? 0
      if (born > 0) {
        const first = bestLook(ways, waits, prices, after, { kind, fromHour: hour, alreadyUnknown: 1 })
        cost += born * first.cost
        follow(first, kind, hour, born)
      }
      const parcels = shown[hour]?.[kind] ?? 0
      const next = after[hour]?.[kind]
      if (parcels > 0 && next !== undefined && ways.ends[kind] !== true) follow(next, kind, hour, parcels)
    }
  }
  return { cost, looks }
}

/** The best next poll, by hour and kind shown. Computed from the last hour backward, because each depends on the later ones. */
function bestLooks(ways: Ways, waits: Waits, prices: Float64Array): readonly (readonly Look[])[] {
  const after: Look[][] = Array.from({ length: ways.hours + 1 }, () => [])
  for (let fromHour = ways.hours; fromHour >= 0; fromHour--) {
    for (let kind = 0; kind < ways.kinds; kind++) {
      const isOver = fromHour === ways.hours || ways.ends[kind] === true
      const none = { cost: 0, hour: ways.hours }
      after[fromHour]?.push(isOver ? none : bestLook(ways, waits, prices, after, { kind, fromHour, alreadyUnknown: 0 }))
    }
  }
  return after
}

function bestLook(
  ways: Ways,
  waits: Waits,
  prices: Float64Array,
  after: readonly (readonly Look[])[],
  { kind, fromHour, alreadyUnknown }: { readonly kind: number; readonly fromHour: number; readonly alreadyUnknown: number },
): Look {
  let best: Look = { cost: Number.POSITIVE_INFINITY, hour: ways.hours }
  for (let hour = fromHour + 1; hour <= ways.hours; hour++) {
    // An entry that begins within an hour is counted for half of it.
    const waited = waits.unknownHours(kind, fromHour, hour) + alreadyUnknown * (hour - fromHour - 0.5)
    if (waited >= best.cost) break
    let cost = waited + (prices[hour] ?? 0)
    for (const { kind: to, chance } of waits.shown(kind, fromHour, hour)) cost += chance * (after[hour]?.[to]?.cost ?? 0)
    if (cost < best.cost) best = { cost, hour }
  }
  return best
}
