import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL, trackingId } from '../load/event.ts'
import { type Generator, startGenerator } from '../load/generator-process.ts'
import { interleave, type Measurement, observe, ratios } from '../measure.ts'
import { assertVisible, eventsFor, measurePushes, type PushMeasurement } from '../pushes.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { OPERATOR, SHOP } from '../servers/relay-config.ts'
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

/**
 * Pushes to relays with and without watchdogs, orders and the carrier's report. The parcels of all are watched beforehand, because only a known
 * parcel can have an order, and events are pushed when they happen.
 */
export async function insight(bench: Bench): Promise<SuiteReport> {
  const { rounds } = bench.settings
  const without = await buildWithoutReport(bench.relayEntry)
  const load = startGenerator()
  try {
    const taken = await interleave(rounds, {
      on: () => pushTo(bench, load, { entry: bench.relayEntry, isWatched: true }),
      off: () => pushTo(bench, load, { entry: without, isWatched: false }),
      report: () => pushTo(bench, load, { entry: bench.relayEntry, isWatched: false }),
    })
    const { on, off, report } = taken
    const rate = (of: Measurement) => of.ratePerSecond
    const best = (of: readonly Measurement[]) => Math.min(...of.map((one) => one.cpuUsPerRequest))
    const goals = { unit: 'x', better: 'higher', must: 0.93, aim: 0.98 } as const
    return {
      figures: [
        figure('insight: pushes with 20 rules, orders and the report / all off', ratios(on, off, rate), goals),
        figure('insight: pushes with the report / all off', ratios(report, off, rate), { unit: 'x', better: 'higher' }),
        figure("insight: all off's processor time of a push / all on's, best of each", [best(off) / best(on)], goals),
        figure("insight: all off's processor time of a push / that with the report", [best(off) / best(report)], {
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
    await load.stop()
  }
}

async function pushTo({ settings, folder, say }: Bench, load: Generator, { entry, isWatched }: Variant): Promise<PushMeasurement> {
  const ownFolder = mkdtempSync(join(folder, 'relay-'))
  const storePath = join(ownFolder, 'relay.db')
  const apps = [{ ...OPERATOR.app, username: SHOP.username, scopes: ['status', 'admin'] }]
  const sections = { apps, zone: 'Europe/Stockholm', ...(isWatched ? { watchdogs: someRules() } : {}) }
  const relay = await startRelay(entry, ownFolder, { storePath, sections })
  await watchParcels(relay, Math.ceil(eventsFor(settings, null) / EVENTS_PER_PARCEL / 1000) * 1000, isWatched)
  const pushes = { connections: CONNECTIONS, ratePerSecond: null, firstParcel: 0, repeat: false, isFresh: true }
  const measured = await measurePushes(load, relay, settings, pushes)
  await assertVisible(relay, pushes, measured.acknowledged, CONNECTIONS)
  const counted = entry.includes('without-report') ? 0 : await untilCounted(relay, measured.acknowledged)
  await relay.stop()
  const { pushes: stored, entries, quarantined } = contentsOf(storePath)
  equal(stored, measured.acknowledged, 'the store holds what was acknowledged')
  equal(entries, measured.acknowledged, 'each push became an entry')
  equal(quarantined, 0, 'nothing was quarantined')
  const watched = countIn(storePath, 'SELECT count(*) FROM watchdog_due WHERE due_at_ms > 0')
  equal(watched > 0, isWatched, 'parcels are watched over')
  equal(countIn(storePath, 'SELECT count(*) FROM watchdog_breach'), 0, 'no parcel is stalled')
  rmSync(ownFolder, { recursive: true, force: true })
  say(
    `${Math.round(measured.ratePerSecond)}/s, ${measured.cpuUsPerRequest.toFixed(1)} us; ${stored} stored, ${counted} in the report, ${watched} watched over`,
  )
  return measured
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
