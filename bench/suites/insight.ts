import { equal } from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL, trackingId } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { interleave, type Measurement, measure, observe, paceOf, ratios, warmUp } from '../measure.ts'
import { assertVisible } from '../pushes.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { OPERATOR, SHARED_KEY, SHOP } from '../servers/relay-config.ts'
import { buildWithoutReport } from '../servers/without-report.ts'
import { contentsOf } from '../stores/contents.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const CONNECTIONS = 64
const RULES = 20

/** The rules of `config/example.yaml`, and such rules for each shop and service. No parcel is ever stalled by them: they only watch. */
function someRules(): readonly object[] {
  const shops = ['north', 'south', 'east', 'west'].map((shop) => [shop, { label: [`shop=${shop}`] }] as const)
  const services = ['home', 'locker'].map((service) => [service, { label: [`service=${service}`], distributionType: ['Mailbox'] }] as const)
  const rules = [['all', {}] as const, ...shops, ...services].flatMap(([name, when]) => [
    { name: `${name}-no-scan`, when: { ...when, status: ['Ingested', 'TerminalArrived'] }, notWithin: '48h' },
    { name: `${name}-not-delivered`, when: { ...when, status: ['DeliveryStarted'] }, notBy: '22:00', until: ['DeliverySucceeded'] },
    { name: `${name}-never-handed-in`, when: { ...when, status: ['Created'] }, notWithin: '5d' },
  ])
  return [...rules.slice(0, RULES - 1), { name: 'returned', when: { status: ['Returned'] }, until: [] }]
}

interface Variant {
  readonly entry: string
  /** Whether parcels have references and labels, and rules watch over them. */
  readonly isWatched: boolean
}

/** A relay that runs beside the others, with pushes of its own. */
interface Contestant extends Variant {
  readonly relay: RelayServer
  readonly load: Generator
  acknowledged: number
}

/** A round is so many short turns of each relay: what else the machine does lasts longer than a turn, and so disturbs all of them alike. */
const TURNS_OF_A_ROUND = 8
/** Pushes per second that no relay here reaches; sets how many are prepared. */
const RATE_MAX = 20_000

/**
 * Pushes to relays with and without watchdogs, orders and the carrier's report. All run at once, and take turns. Their parcels are watched beforehand,
 * because only a known parcel can have an order, and events are pushed when they happen.
 */
export async function insight(bench: Bench): Promise<SuiteReport> {
  const { rounds, durationMs } = bench.settings
  const without = await buildWithoutReport(bench.relayEntry)
  const open = (variant: Variant) => startContestant(bench, variant)
  const contestants = {
    on: await open({ entry: bench.relayEntry, isWatched: true }),
    off: await open({ entry: without, isWatched: false }),
    report: await open({ entry: bench.relayEntry, isWatched: false }),
  }
  try {
    for (const one of Object.values(contestants)) one.acknowledged = await warmUp(one.load, one.relay.port, bench.settings.warmUpMs)
    const turn = (one: Contestant) => () => pushFor(one, durationMs / TURNS_OF_A_ROUND)
    const taken = await interleave(rounds * TURNS_OF_A_ROUND, {
      on: turn(contestants.on),
      off: turn(contestants.off),
      report: turn(contestants.report),
    })
    for (const one of Object.values(contestants)) bench.say(await checkContents(one))
    const { on, off, report } = taken
    const rate = (of: Measurement) => of.ratePerSecond
    const cost = (of: Measurement) => 1 / of.cpuUsPerRequest
    const goals = { unit: 'x', better: 'higher', must: 0.93, aim: 0.98 } as const
    return {
      figures: [
        figure('insight: pushes with 20 rules, orders and the report / all off', ratios(on, off, rate), goals),
        figure('insight: pushes with the report / all off', ratios(report, off, rate), { unit: 'x', better: 'higher' }),
        figure("insight: all off's processor time of a push / all on's", ratios(on, off, cost), { unit: 'x', better: 'higher' }),
        figure("insight: all off's processor time of a push / that with the report", ratios(report, off, cost), {
          unit: 'x',
          better: 'higher',
        }),
      ],
      observations: [
        observe(`insight: ${RULES} rules, orders, report`, on),
        observe('insight: report', report),
        observe('insight: all off', off),
      ],
    }
  } finally {
    for (const { relay, load } of Object.values(contestants)) await Promise.all([relay.stop(), load.stop()])
  }
}

async function startContestant({ settings, folder }: Bench, { entry, isWatched }: Variant): Promise<Contestant> {
  const { rounds, durationMs, warmUpMs } = settings
  const ownFolder = mkdtempSync(join(folder, 'relay-'))
  const apps = [{ ...OPERATOR.app, username: SHOP.username, scopes: ['status', 'admin'] }]
  const sections = { apps, zone: 'Europe/Stockholm', ...(isWatched ? { watchdogs: someRules() } : {}) }
  const config = { storePath: join(ownFolder, 'relay.db'), sections }
  const events = Math.ceil((RATE_MAX * (warmUpMs + rounds * durationMs)) / 1000)
  const watching = await startRelay(entry, ownFolder, config)
  await watchParcels(watching, Math.ceil(events / EVENTS_PER_PARCEL / 1000) * 1000, isWatched)
  // The garbage of the long lists is not what is measured.
  await watching.stop()
  const relay = await startRelay(entry, ownFolder, config)
  const load = startGenerator()
  await load.prepare({ kind: 'pushes', firstParcel: 0, events, sharedKey: SHARED_KEY, repeat: false, isFresh: true })
  return { entry, isWatched, relay, load, acknowledged: 0 }
}

async function pushFor(one: Contestant, forMs: number): Promise<Measurement> {
  const measured = await measure(one.load, one.relay.pid, { port: one.relay.port, connections: CONNECTIONS, pace: paceOf(null, forMs) })
  one.acknowledged += measured.answered
  return measured
}

/** Throws unless the store holds all that was acknowledged, counted and watched over as it should be. */
async function checkContents({ relay, entry, isWatched, acknowledged }: Contestant): Promise<string> {
  const pushes = { connections: CONNECTIONS, ratePerSecond: null, firstParcel: 0, repeat: false }
  await assertVisible(relay, pushes, acknowledged, CONNECTIONS)
  const counted = entry.includes('without-report') ? 0 : await untilCounted(relay, acknowledged)
  const { pushes: stored, entries, quarantined } = contentsOf(relay.storePath)
  equal(stored, acknowledged, 'the store holds what was acknowledged')
  equal(entries, acknowledged, 'each push became an entry')
  equal(quarantined, 0, 'nothing was quarantined')
  const watched = countIn(relay.storePath, 'SELECT count(*) FROM watchdog_due WHERE due_at_ms > 0')
  equal(watched > 0, isWatched, 'parcels are watched over')
  equal(countIn(relay.storePath, 'SELECT count(*) FROM watchdog_breach'), 0, 'no parcel is stalled')
  return `${stored} stored, ${counted} in the report, ${watched} watched over`
}

/** Watches parcels, each with the reference and the labels of its order if `hasOrders`. Resolves when the watchdogs have looked at all. */
async function watchParcels(relay: RelayServer, parcels: number, hasOrders: boolean): Promise<void> {
  const lines = Array.from({ length: parcels }, (_, nth) => {
    const labels = { shop: ['north', 'south', 'east', 'west'][nth % 4] ?? '', service: nth % 3 === 0 ? 'home' : 'locker' }
    return [trackingId(nth), ...(hasOrders ? [`ORDER-${100_000 + nth}`, labels.shop, labels.service] : [])].join(',')
  })
  const head = hasOrders ? 'identifier,reference,label:shop,label:service' : 'identifier'
  const response = await fetch(`${relay.internalUrl}/relay/parcels/watch`, {
    method: 'POST',
    body: `${[head, ...lines].join('\n')}\n`,
    headers: { authorization: `Bearer ${await relay.logIn()}`, 'content-type': 'text/csv' },
  })
  const report: unknown = await response.json()
  equal(typeof report === 'object' && report !== null && 'watched' in report ? report.watched : report, parcels, 'all parcels are watched')
  while (countIn(relay.storePath, 'SELECT count(*) FROM watchdog_due WHERE due_at_ms = 0') > 0) await pause(100)
}

/** Resolves when the report counts what was acknowledged. */
async function untilCounted(relay: RelayServer, acknowledged: number): Promise<number> {
  const token = await relay.logIn()
  const response = await relay.ask('/relay/report', token)
  const report: { readonly counts: { readonly pushed: number } } = JSON.parse(await response.text())
  equal(report.counts.pushed, acknowledged, 'the report counts each push')
  return report.counts.pushed
}

function countIn(storePath: string, sql: string): number {
  const db = new Database(storePath, { readonly: true, fileMustExist: true })
  try {
    return Number(db.prepare(sql).pluck().get())
  } finally {
    db.close()
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
