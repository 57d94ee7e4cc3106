import type { Lifecycle } from './lifecycles.ts'
import { foresee, learnWays, type Waits, type Ways } from './ways.ts'

const HOUR_MS = 3_600_000
const ROUNDS = 800
/** What an hour's price rises by, in hours of one entry, when twice as many calls are wanted as there are; less from round to round. */
const STEP_HOURS = 0.3

/**
 * The least mean staleness that any poller could reach without pushes and with so many calls, if it knew from the start how often and when
 * parcels of each kind go on, and how many will come; but not what a parcel does before it asked. A bound from below: every hour gets a price
 * of a call, and what the best plan of looks costs at these prices, less what they would earn for the calls there are, is no more than any
 * poller within these calls must bear, whatever the prices (Lagrange). They are raised where the plans want more calls than there are.
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
  /** Of all parcels: hours of unknown entries, and the price of the looks. */
  readonly cost: number
  /** By hour. */
  readonly looks: Float64Array
}

interface Look {
  readonly cost: number
  readonly hour: number
}

/** The plan of looks that costs least at these prices: what to do after a look depends on what it shows and on the hour alone. */
function planLooks(ways: Ways, waits: Waits, prices: Float64Array): Plan {
  const after = bestLooks(ways, waits, prices)
  const looks = new Float64Array(ways.hours)
  // By hour and kind: parcels that a look shows there. It is gone through forwards, and every look leads to a later one.
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

/** By hour and kind of what a look showed: the best next one. From the last hour backwards, as each rests on those that follow. */
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
    // An entry that begins within the hour was there for half of it.
    const waited = waits.unknownHours(kind, fromHour, hour) + alreadyUnknown * (hour - fromHour - 0.5)
    if (waited >= best.cost) break
    let cost = waited + (prices[hour] ?? 0)
    for (const { kind: to, chance } of waits.shown(kind, fromHour, hour)) cost += chance * (after[hour]?.[to]?.cost ?? 0)
    if (cost < best.cost) best = { cost, hour }
  }
  return best
}
