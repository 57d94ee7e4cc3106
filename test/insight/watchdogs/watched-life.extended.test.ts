import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../support/runner/seeded.ts'
import { engines } from '../../support/store/engines.ts'

// A model of DOMAIN 9, written from its words, beside random lives: pushes, polls, orders, joins, rules that change in the middle of a sweep, restarts,
// and clocks that are put back.

type Rule = ReturnType<typeof aRule>

const ZONE = 'Europe/Stockholm'
/** Two days before the clock is put ahead. */
const START = Date.UTC(2026, 2, 27, 8)
const STATUSES = ['Created', 'Ingested', 'DeliveryStarted', 'DeliverySucceeded', 'Returned']

const RULES: readonly Rule[] = [
  aRule({ name: 'no-scan', notWithinMs: 20 * HOUR_MS }),
  aRule({ name: 'no-scan', notWithinMs: 7 * HOUR_MS, past: false }),
  aRule({ name: 'by-ten', when: { status: ['DeliveryStarted'] }, notWithinMs: null, notBy: '22:00', until: ['DeliverySucceeded'] }),
  aRule({ name: 'returned', when: { status: ['Returned'] }, notWithinMs: null, until: [] }),
  aRule({ name: 'mailbox', when: { status: ['Created', 'Ingested'], distributionType: ['Mailbox'] }, notWithinMs: 30 * HOUR_MS }),
  aRule({ name: 'vip', when: { detailedStatus: ['Ingested'], label: ['vip=yes'] }, notWithinMs: 9 * HOUR_MS, past: false }),
]

interface Seen {
  readonly status: string
  readonly second: number
  readonly learntMs: number
}

interface Known {
  entries: readonly Seen[]
  pushedTypes: readonly string[]
  polled: { readonly askedMs: number; readonly type: string } | null
  order: { readonly nth: number; readonly isVip: boolean } | null
  /** What was told, by rule and time; true: it lasts. */
  told: Map<string, boolean>
}

function dueOf(rule: Rule, fromMs: number): number {
  if (rule.notBy === null) return fromMs + (rule.notWithinMs ?? 0)
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone: ZONE, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  const first = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS
  for (let atMs = first; ; atMs += MINUTE_MS) if (clock.format(atMs) === rule.notBy) return atMs
}

/** Since when a parcel is, was or will be stalled; null: it is not watched over. */
function sinceOf(rule: Rule, parcel: Known): number | null {
  const type = parcel.polled?.type ?? parcel.pushedTypes.toSorted().at(-1) ?? ''
  if (rule.when.distributionType?.includes(type) === false) return null
  if (rule.when.label !== null && parcel.order?.isVip !== true) return null
  const begins = (one: Seen) => (rule.when.status ?? rule.when.detailedStatus ?? []).includes(one.status)
  const open = parcel.entries.filter(
    (one) =>
      begins(one) &&
      !parcel.entries.some((other) => !begins(other) && other.second >= one.second && (rule.until?.includes(other.status) ?? true)),
  )
  if (open.length === 0) return null
  const seconds = open.map(({ second }) => second)
  const second = rule.notWithinMs === null && rule.notBy === null ? Math.min(...seconds) : Math.max(...seconds)
  const countsFrom = open.filter((one) => one.second === second).map((one) => Math.min(one.second * 1000, one.learntMs))
  return dueOf(rule, Math.floor(Math.min(...countsFrom) / 1000) * 1000)
}

async function live(engine: Engine, seed: number, steps: number) {
  const { below, pick } = drawWith(seeded(seed))
  let store = await openWatched(engine, [])
  store.setClock(START)
  let rules: readonly Rule[] = []
  const loads = new Map<string, { rule: Rule; atMs: number }>()
  let [saidNth, readTo] = [0, 0]
  const parcels = [0, 1, 2, 3].map((): Known => ({ entries: [], pushedTypes: [], polled: null, order: null, told: new Map() }))
  /** Which parcel each number has been joined to. */
  const holder = parcels.map((_, nth) => nth)
  const idOf = (nth: number) => `100${nth}1`
  const at = (nth: number) => parcels[holder[nth] ?? 0] ?? expect.fail()
  const trace: string[] = []
  const learn = (nth: number, seen: readonly Seen[]) => {
    const all = [...at(nth).entries, ...seen]
    at(nth).entries = [...Map.groupBy(all, ({ status, second }) => `${status} ${second}`).values()].map(
      (same) => same.toSorted((a, b) => a.learntMs - b.learntMs)[0] ?? expect.fail(),
    )
  }
  const take = async (next: readonly Rule[]) => {
    rules = next
    await store.writes.adjustWatchdogs({ rules, zone: ZONE })
  }
  const wanted = (parcel: Known) =>
    rules.flatMap((rule) => {
      const since = sinceOf(rule, parcel)
      const isOfPast = !rule.past && since !== null && since <= (loads.get(rule.name)?.atMs ?? store.now())
      return since === null || isOfPast ? [] : [{ key: `${rule.name} ${since}`, since }]
    })
  const timeOf = () => store.now() - (store.now() % (30 * MINUTE_MS)) + (below(20) - 16) * 30 * MINUTE_MS
  const iso = (atMs: number) => new Date(atMs).toISOString()

  /** Looks, and compares what was told with the model. */
  async function look(isAll: boolean) {
    for (const [name] of loads) if (!rules.some((rule) => rule.name === name)) loads.delete(name)
    for (const rule of rules) {
      const known = loads.get(rule.name)
      loads.set(rule.name, { rule, atMs: known?.rule === rule ? Math.min(known.atMs, store.now()) : store.now() })
    }
    for (let isMore = true; isMore; ) {
      const limit = 1 + below(3)
      const result = await store.writes.lookAtWatched({ nowMs: store.now(), limit, mayTellUnchecked: true })
      isMore = isAll && result.isMore
    }
    const { items, next } = await store.reads.readFeed({ after: readTo, limit: 1000 })
    readTo = next
    for (const item of items) {
      if (!('breach' in item) || item.breach === null) continue
      const nth = parcels.findIndex((_, one) => item.parcel.identifiers.includes(idOf(one)))
      const key = `${item.breach.rule} ${item.breach.sinceMs}`
      const due = wanted(at(nth)).find((one) => one.key === key)
      const told = at(nth).told.get(key)
      const context = [seed, trace.length, item.kind, nth, key]
      if (item.kind === 'stalled')
        expect([...context, told, due !== undefined && due.since <= store.now()]).toEqual([...context, undefined, true])
      else expect([...context, told, due]).toEqual([...context, true, undefined])
      at(nth).told.set(key, item.kind === 'stalled')
    }
    if (!isAll) return
    for (const nth of new Set(holder)) {
      const open = [...(at(nth).told ?? [])].flatMap(([key, isOpen]) => (isOpen ? [key] : []))
      const due = wanted(at(nth)).filter(({ key, since }) => at(nth).told.get(key) ?? since <= store.now())
      expect([seed, trace, nth, open.sort()]).toEqual([seed, trace, nth, due.map(({ key }) => key).sort()])
      const stored = (await store.breaches(idOf(nth))) ?? []
      expect([seed, nth, stored.flatMap(([rule, since, isEnded]) => (isEnded === true ? [] : [`${rule} ${since}`])).sort()]).toEqual([
        seed,
        nth,
        open,
      ])
    }
  }

  const acts: Readonly<Record<string, () => Promise<unknown>>> = {
    async push() {
      const [nth, status, atMs, type] = [below(4), pick(STATUSES), timeOf(), pick(['Mailbox', 'Home'])]
      await store.push({ status, detailedStatus: status, eventTime: iso(atMs), trackingIds: [idOf(nth)], distributionType: type })
      learn(nth, [{ status, second: atMs / 1000, learntMs: store.now() }])
      at(nth).pushedTypes = [...at(nth).pushedTypes, type]
      return [nth, status, iso(atMs), type]
    },
    async poll() {
      const [nth, type] = [below(4), pick(['Mailbox', 'Home'])]
      const seen = at(nth).entries.filter(() => below(2) === 0)
      const fresh = below(2) === 0 ? [{ status: pick(STATUSES), second: timeOf() / 1000, learntMs: store.now() }] : []
      const listed = [...seen, ...fresh].filter(
        (one, nthOne, all) => all.findIndex((other) => other.status === one.status && other.second === one.second) === nthOne,
      )
      await store.poll({
        asked: `AB10000000${nth}SE`,
        trackingIds: [idOf(nth)],
        distributionType: type,
        statuses: listed.map(({ status, second }) => ({ status, detailedStatus: status, eventTimestamp: iso(second * 1000) })),
      })
      learn(nth, fresh)
      at(nth).polled = { askedMs: store.now(), type }
      return [nth, type, listed]
    },
    async order() {
      const [nth, isVip] = [below(4), below(2) === 0]
      const identifier = idOf(nth)
      const before = at(nth).order?.isVip ?? false
      await store.writes.saveOrder({
        identifier,
        context: { reference: null, labels: isVip ? { vip: 'yes' } : {}, note: null },
        nowMs: store.now(),
      })
      if (before !== isVip) at(nth).order = { nth: saidNth++, isVip }
      return [nth, isVip]
    },
    async join() {
      const [one, other] = [below(4), below(4)]
      const atMs = timeOf()
      await store.push({
        status: 'Created',
        detailedStatus: 'Created',
        eventTime: iso(atMs),
        trackingIds: [idOf(one), idOf(other)],
        distributionType: 'Home',
      })
      const [into, from] = [at(one), at(other)]
      if (into !== from) {
        const orders = [into.order, from.order].filter((order) => order !== null).sort((a, b) => a.nth - b.nth)
        const polls = [into.polled, from.polled].filter((poll) => poll !== null).sort((a, b) => a.askedMs - b.askedMs)
        for (const [key, isOpen] of from.told) into.told.set(key, isOpen || into.told.get(key) === true)
        into.pushedTypes = [...into.pushedTypes, ...from.pushedTypes]
        into.order = orders.at(-1) ?? null
        into.polled = polls.at(-1) ?? null
        const [kept, gone] = [holder[one] ?? 0, holder[other]]
        const entries = from.entries
        for (const [nth, held] of holder.entries()) if (held === gone) holder[nth] = kept
        learn(one, entries)
      }
      learn(one, [{ status: 'Created', second: atMs / 1000, learntMs: store.now() }])
      at(one).pushedTypes = [...at(one).pushedTypes, 'Home']
      return [one, other, iso(atMs)]
    },
    async rules() {
      const some = RULES.filter(() => below(3) > 0)
      await take(below(6) === 0 ? [] : some.filter(({ name }, nth) => some.findIndex((other) => other.name === name) === nth))
      return rules.map(({ name, notWithinMs }) => `${name} ${notWithinMs}`)
    },
    async restart() {
      await store.writes.close()
      const next = await openWatched(engine, [], store.path, false)
      next.setClock(store.now())
      store = next
      return await take(rules)
    },
    back: async () => store.setClock(store.now() - below(6) * HOUR_MS),
    some: () => look(false),
    all: () => look(true),
  }
  const weights = ['push', 'push', 'push', 'push', 'poll', 'poll', 'order', 'rules', 'some', 'some', 'all', 'all']
  for (let step = 0; step < steps; step++) {
    store.pass(pick([MINUTE_MS, HOUR_MS, 5 * HOUR_MS]) + below(1000))
    const act = below(40) === 0 ? 'join' : below(40) === 0 ? 'restart' : below(40) === 0 ? 'back' : pick(weights)
    const what = await acts[act]?.()
    trace.push(`${iso(store.now())} ${act} ${JSON.stringify(what)}`)
  }
  store.pass(3 * DAY_MS)
  await look(true)
  return parcels.reduce((sum, { told }) => sum + told.size, 0)
}

describe.each(engines)('random lives that are watched over, on $name', (engine) => {
  test('9.2, 9.3: each breach is told once, is over once, and lasts as long as the model says', async () => {
    let told = 0
    for (let seed = 1; seed <= runsOn(engine, 12, 4); seed++) told += await live(engine, seed, 80)
    expect(told).toBeGreaterThan(3)
  })
})
