import { setTimeout as pause } from 'node:timers/promises'
import { noFaults } from '../../../src/trial/sandbox/options.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'
import { actionsOf, type Lengths, troubleOf } from './calendar.ts'
import { checkAnswers, checkErased, checkHistories, until } from './checks.ts'
import { looked } from './looked.ts'
import { addShop, ask, carryOut, chosenForErasure, erase, order, restartRelay, startRelay } from './operator.ts'
import { bornParcel, isFinished, type YearParcel } from './parcels.ts'
import { BACKUP } from './stores.ts'
import { openWorld, START_MS, type World, type YearOptions } from './world.ts'

export interface YearReport {
  readonly violations: readonly string[]
  readonly days: number
  readonly parcels: number
  readonly events: number
  readonly erased: number
  readonly living: number
  readonly compared: number
  readonly deliveries: number
  readonly sizes: readonly (readonly [day: number, bytes: number])[]
  /** The largest size in the last third of the days, divided by the largest in the first third. Only days on which parcels come and expire count. */
  readonly growth: number
  /** Real milliseconds by kind of work. */
  readonly spent: Readonly<Record<string, number>>
  readonly errors: readonly (readonly [line: string, count: number])[]
  readonly seconds: number
}

/** The hours at which the clock stops for a while. The first is just after the scheduled backup. */
const HOURS = [BACKUP.hour + (BACKUP.minute + 0.5) / 60, 11, 19] as const
const ACTION_HOUR = 11
const KILL_HOUR = 19
const QUESTION_HOUR = 19
const BORN_A_DAY = { least: 5, more: 4 }
const ERASED_EVERY_DAYS = 4
/** Every event must reach the shop within this time, whatever fails. */
const DELIVERED_WITHIN_MS = 3 * DAY_MS
/** How long to wait for polls and deliveries while the carrier or the shop fails, in real milliseconds. */
const POLLED_MS = 150

/** If no retention pass comes for this many real milliseconds, the clock moves on by a minute. */
const LOOK_AGAIN_MS = 300
/** The longest wait for accepted credentials, in real milliseconds. The second refusal in a row pauses logins for a minute. */
const ACCEPTED_WITHIN_MS = 180_000

export async function liveThroughYear(options: YearOptions): Promise<YearReport> {
  const startedMs = performance.now()
  const world = await openWorld(options)
  const { lengths, parcels, violations, relay, sandbox, subscriber } = world
  const actions = actionsOf(lengths)
  const sizes: [number, number][] = []
  await startRelay(world)
  await addShop(world)
  for (; world.day < lengths.days; world.day++) {
    const { day } = world
    const isQuiet = day >= lengths.days - lengths.quietDays
    await liveThroughDay(world, isQuiet, async () => {
      const action = actions.get(day)
      if (action === undefined) return
      console.log(`day ${day}: ${action}`)
      await carryOut(action, world)
    })
    if ((day + 1) % lengths.checkEveryDays === 0 || day + 1 === lengths.days - lengths.quietDays)
      sizes.push([day, await timed(world, 'checks', () => checkUp(world))])
  }
  const { living } = await checkUpOnAll(world)
  const { compared } = await checkAnswers(looked(world), sandbox)
  for (const what of subscriber.owedSince(world.time.now())) violations.add(`never delivered: ${what}`)
  await relay.stop()
  return {
    violations: violations.found,
    days: world.day,
    parcels: parcels.length,
    events: parcels.reduce((sum, { made }) => sum + made, 0),
    erased: parcels.filter(({ erasedAtMs }) => erasedAtMs !== null).length,
    living,
    compared,
    deliveries: subscriber.received(),
    sizes,
    growth: growthOf(sizes, lengths),
    spent: Object.fromEntries(world.spent),
    errors: [...relay.errors],
    seconds: Math.round((performance.now() - startedMs) / 1000),
  }
}

function growthOf(sizes: readonly (readonly [number, number])[], { days, quietDays, historyDays, staleAfterDays }: Lengths): number {
  // Compacting makes the file smaller for a while, so single sizes cannot be compared.
  const full = sizes.filter(([day]) => day > historyDays + staleAfterDays && day < days - quietDays).map(([, bytes]) => bytes)
  const third = Math.ceil(full.length / 3)
  return Math.max(...full.slice(-third)) / Math.max(...full.slice(0, third))
}

async function liveThroughDay(world: World, isQuiet: boolean, act: () => Promise<void>): Promise<void> {
  const { day, sandbox, subscriber } = world
  const dayMs = START_MS + day * DAY_MS
  const { faults, mood, isKilled } = troubleOf(day, isQuiet)
  sandbox.setFaults(noFaults)
  await timed(world, 'logins', () => untilAccepted(world))
  sandbox.setFaults({ ...noFaults, ...faults })
  subscriber.mood = mood
  if (!isQuiet) await timed(world, 'orders', () => bear(world, dayMs))
  for (const hour of HOURS) {
    const atMs = dayMs + hour * HOUR_MS
    world.time.jumpTo(atMs)
    await timed(world, 'pushes', () => makeScans(world))
    // A restarted relay checks retention only a minute later, so do not wait for that.
    if (hour === KILL_HOUR && isKilled) await timed(world, 'kills', () => restartRelay(world, 'kill'))
    else await timed(world, 'rest', () => untilRested(world, { atMs, isWell: mood === 'well' && Object.keys(faults).length === 0 }))
    if (hour === HOURS[0]) await timed(world, 'backups', () => untilBackedUp(world))
    if (hour === ACTION_HOUR) await timed(world, 'actions', act)
    if (hour !== QUESTION_HOUR) continue
    await timed(world, 'questions', () => askForAll(world))
    const chosen = day % ERASED_EVERY_DAYS === 2 && !isQuiet ? chosenForErasure(world) : null
    if (chosen !== null) await timed(world, 'erasures', () => erase(chosen, world))
  }
}

/** Tells whether an app should ask for a parcel: the shop did not order it, nobody has asked for it, and the carrier knows it. */
const isToBeAskedFor = ({ isOrdered, askedAtMs, made, erasedAtMs }: YearParcel): boolean =>
  !isOrdered && askedAtMs === 0 && made > 1 && erasedAtMs === null

async function askForAll(world: World): Promise<void> {
  for (const parcel of world.parcels.filter(isToBeAskedFor)) await ask(parcel, world)
}

async function timed<Result>({ spent }: World, name: string, work: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now()
  const result = await work()
  spent.set(name, Math.round((spent.get(name) ?? 0) + performance.now() - startedMs))
  return result
}

async function bear(world: World, dayMs: number): Promise<void> {
  const { draw, random, parcels, sandbox } = world
  const count = BORN_A_DAY.least + draw.below(BORN_A_DAY.more)
  for (let nth = 0; nth < count; nth++) {
    const parcel = bornParcel(parcels.length, dayMs, random)
    parcels.push(parcel)
    sandbox.addParcel(parcel)
    if (parcel.isOrdered) await order(parcel, world)
  }
}

/** Makes the carrier's scans up to the current time, and pushes them. */
async function makeScans({ time, parcels, sandbox, subscriber }: World): Promise<void> {
  const nowMs = time.now()
  const due = parcels
    .filter((parcel) => !isFinished(parcel))
    .flatMap((parcel) => parcel.scans.slice(parcel.made).flatMap((scan) => (scan.atMs <= nowMs ? [{ parcel, scan }] : [])))
    .sort((a, b) => a.scan.atMs - b.scan.atMs)
  for (const { parcel, scan } of due) {
    parcel.made += 1
    if (parcel.erasedAtMs === null) subscriber.owe(parcel, scan)
    sandbox.scan(parcel.trackingNumber, { ...scan, location: parcel.location, note: parcel.word })
  }
  await sandbox.settle()
}

/**
 * Waits until the carrier accepts the credentials again, if it refused them on the day before. On PostgreSQL the pause after a refusal is
 * measured by the server's clock, which is real. Without this wait many simulated days would pass without a poll.
 */
async function untilAccepted({ relay, time }: World): Promise<void> {
  await until(
    'the carrier accepts the credentials again',
    async () => {
      if ((await relay.call('GET', '/relay/upstream')).body.credentials !== 'refused') return true
      time.jumpTo(time.now() + MINUTE_MS / 2)
      await pause(LOOK_AGAIN_MS)
      return false
    },
    ACCEPTED_WITHIN_MS,
  )
}

/** Waits until the relay has noticed the new time: its retention pass has ended, and no poll or delivery is due that can be made. */
async function untilRested({ relay, time }: World, { atMs, isWell }: { readonly atMs: number; readonly isWell: boolean }): Promise<void> {
  const startedMs = performance.now()
  let lookedMs = startedMs
  await until('the relay has done what was due', async () => {
    const text = await relay.metrics()
    if (!(metric(text, 'relay_retention_pass_timestamp_seconds') * 1000 >= atMs - 1000)) {
      // A relay that was busy when the clock jumped checks again a minute later.
      if (performance.now() - lookedMs > LOOK_AGAIN_MS) {
        time.jumpTo(time.now() + MINUTE_MS + 1)
        lookedMs = performance.now()
      }
      return false
    }
    if (!isWell && performance.now() - startedMs > POLLED_MS) return true
    return metric(text, 'relay_parcels_overdue') === 0 && metric(text, 'relay_endpoint_waiting\\{endpoint="shop"\\}') === 0
  })
}

function metric(text: string, pattern: string): number {
  return Number(new RegExp(`^${pattern} (.*)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

/** Waits for the nightly backup on SQLite. */
async function untilBackedUp({ relay, store, violations }: World): Promise<void> {
  if (!store.isCleanAtOnce) return
  await until('the scheduled backup is made', async () => metric(await relay.metrics(), 'relay_backup_age_seconds') < HOUR_MS / 1000)
  const { body, text } = await relay.call('GET', '/relay/backups')
  if (body.failing !== null) violations.add(`the backup failed: ${text}`)
}

/** Checks what must always hold. Returns the bytes of the store, measured while the relay is stopped. */
async function checkUp(world: World): Promise<number> {
  const { relay, gateway, store, day } = world
  const { living } = await checkUpOnAll(world)
  gateway.relayUrl = null
  await relay.stop()
  await store.tend()
  const bytes = await store.bytes()
  await startRelay(world)
  console.log(`day ${day}: ${living} living parcels, ${Math.round(bytes / 1024)} KiB, ${JSON.stringify(Object.fromEntries(world.spent))}`)
  return bytes
}

async function checkUpOnAll(world: World): Promise<{ readonly living: number }> {
  const { time, subscriber, violations } = world
  for (const what of subscriber.owedSince(time.now() - DELIVERED_WITHIN_MS)) violations.add(`not delivered yet: ${what}`)
  await checkErased(looked(world))
  return await checkHistories(looked(world))
}
