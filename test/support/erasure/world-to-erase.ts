import { gzipSync } from 'node:zlib'
import type { OperatorAction } from '../../../src/core/domain/admin/operator-action.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import { createVault } from '../../../src/core/ops/vault.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { createManageErasures, type ManageErasuresPorts } from '../../../src/upkeep/erasure/manage-erasures.ts'
import { createTombstoneKeyKeeper } from '../../../src/upkeep/erasure/tombstone-key.ts'
import { storesLeftBeside } from '../../../src/upkeep/moving/sqlite-move-mark.ts'
import { endpointSettings } from '../delivery/stored-endpoint.ts'
import { pushBody } from '../history/builders.ts'
import { OPERATOR } from '../relay/operator.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../runner/constants.ts'
import type { drawWith } from '../runner/seeded.ts'
import { REFUSAL } from '../store/refusal.ts'
import { openStore } from '../store/write-side.ts'

/** The at-rest key of the stores, as a config names it. */
export const AT_REST = Buffer.alloc(32, 'at rest')

/** Opens a store, as a relay does at its start: what a kill has left of an erasure is finished. */
export async function openToErase(engine: Engine, place: string, nowMs: number) {
  const store = await openStore(nowMs, engine, place)
  const vault = createVault({ list: () => [AT_REST], first: () => AT_REST })
  const key = createTombstoneKeyKeeper({
    write: store.writes,
    vault,
    makeKey: () => Buffer.alloc(32, 5),
    where: () => 'a key',
    clock: { now: store.now },
  })
  await key.open()
  /** Erases parcels. `write`: the verbs with which, for a test that ends them early. */
  const forget = async (identifiers: readonly string[], write: ManageErasuresPorts['write'] = store.writes) => {
    const erasures = createManageErasures({
      write,
      key,
      listBackups: async () => ({ names: [], unreadable: null }),
      listLeftStores: async () => (place.startsWith('postgres://') ? [] : storesLeftBeside(place)),
      forget: () => undefined,
      meter: { erased: () => undefined },
      clock: { now: store.now },
      relayId: store.writes.relayId,
    })
    async function* lines() {
      for (const identifier of identifiers) yield JSON.stringify(identifier)
    }
    return await erasures.forgetList({ format: 'ndjson', column: null, dryRun: false, lines: lines(), by: OPERATOR })
  }
  return { ...store, vault, forget }
}

export type StoreToErase = Awaited<ReturnType<typeof openToErase>>
type Draw = ReturnType<typeof drawWith>

/** The identifiers of a parcel. */
export type Names = readonly [string, ...string[]]

export interface WorldToErase {
  readonly gone: readonly Names[]
  readonly kept: readonly Names[]
  /** Whether records may have an identifier of a parcel to be erased as a part of a longer word. */
  readonly isUnclear: boolean
}

const PARCELS = 8

/** Draws an identifier that occurs nowhere by chance. */
function newName({ below, pick }: Draw): string {
  const digits = String(100_000_000 + below(900_000_000))
  return pick([`AB${digits}SE`, `84${digits}`, `PKT${digits}`])
}

/** Writes an identifier as carriers and receivers print it. */
function printed({ pick }: Draw, name: string): string {
  const groups = name.match(/.{1,3}/g) ?? []
  return pick([name, name.toLowerCase(), groups.join(' '), groups.join('-'), groups.join('\u00a0'), `${name}!`])
}

/** Fills a store with parcels, of which some are to be erased, and with all that may name them. Its clock ends a day ago. */
export async function fillWorld(store: StoreToErase, draw: Draw): Promise<WorldToErase> {
  const parcels = Array.from({ length: PARCELS }, (): Names => (draw.below(2) === 0 ? [newName(draw)] : [newName(draw), newName(draw)]))
  const endpoints = await Promise.all(['stays', 'leaves'].map((name) => addSealed(store, name)))
  const leaveAt = draw.below(PARCELS)
  for (const [nth, names] of parcels.entries()) {
    await live(store, draw, names)
    if (draw.below(2) === 0) await refuseDue(store, draw, parcels)
    if (nth === leaveAt) await store.writes.removeEndpoint({ id: endpoints[1] ?? '', nowMs: store.now() })
  }
  await refuseDue(store, draw, parcels)
  for (const [first, ...others] of parcels) for (const other of others) await join(store, draw, first, other)
  if (draw.below(2) === 0) await passRetention(store)
  for (const [first, ...others] of parcels) await store.push({ trackingIds: [first, ...others], eventTime: timeOf(store, MINUTE_MS) })
  await refuseDue(store, draw, parcels)
  const [gone, kept] = [parcels.slice(0, PARCELS / 2), parcels.slice(PARCELS / 2)]
  const isUnclear = draw.below(3) === 0
  for (const names of gone) {
    for (const name of names) await mention(store, draw, name)
    if (!isUnclear) continue
    const longer = `${draw.pick(['7', 'X'])}${draw.pick(names)}7`
    await hold(store, Buffer.from(JSON.stringify({ trackingIds: [longer] })), null)
    await store.writes.recordOperatorEvent({ event: 'reload_failed', replica: 'one', problems: [`what is ${longer}?`] }, store.now())
  }
  for (const id of endpoints)
    await store.writes.changeEndpoint({ id, change: { enabled: false }, key: null, nowMs: store.now() }).catch(() => undefined)
  return { gone, kept, isUnclear }
}

const timeOf = ({ now }: StoreToErase, agoMs: number) => new Date(now() - agoMs).toISOString()

async function addSealed({ writes, vault, now }: StoreToErase, name: string): Promise<string> {
  const id = await writes.reserveEndpoint(now())
  const settings = { ...endpointSettings, name, backfill: true }
  await writes.addEndpoint({ id, settings, key: await vault.seal('a key of thirty-two characters !', id), from: null, nowMs: now() })
  return id
}

/** Some pushes and polls of a parcel, one of them dated 400 days ahead. */
async function live(store: StoreToErase, draw: Draw, names: Names): Promise<void> {
  store.pass(HOUR_MS)
  const texts = { en: `Parcel ${printed(draw, names[0])} has left`, sv: 'Skickat' }
  for (const name of names)
    await store.push({ trackingIds: [name], texts, location: `Box ${printed(draw, name)}`, eventTime: timeOf(store, HOUR_MS) })
  if (draw.below(3) === 0) {
    const atMs = store.now() + 400 * DAY_MS
    await store.push({ trackingIds: [draw.pick(names)], status: 'Delivered', eventTime: new Date(atMs).toISOString() })
  }
  if (draw.below(2) === 0) await answer(store, draw, draw.pick(names), [draw.pick(names)])
  await store.writes.watch({ identifier: draw.pick(names), nowMs: store.now() })
  await store.writes.noteNotPollable(draw.pick(names))
  if (draw.below(2) === 0) await describe(store, draw, names)
}

/** Says of the order of a parcel what names the parcel. */
async function describe({ writes, now }: StoreToErase, draw: Draw, names: Names): Promise<void> {
  const context = {
    reference: `order of ${printed(draw, names[0])}`,
    labels: { parcel: printed(draw, draw.pick(names)) },
    note: names.join('\n'),
  }
  const action = {
    atMs: now(),
    by: OPERATOR,
    action: 'parcel.order_changed',
    target: { kind: 'parcel', id: names[0] },
    detail: {},
  } as const
  await writes.saveOrder({ identifier: draw.pick(names), context, nowMs: now(), action })
}

async function answer(store: StoreToErase, draw: Draw, asked: string, trackingIds: readonly string[]): Promise<void> {
  const text = `Parcel ${printed(draw, asked)} is on its way`
  const statuses = [{ detailedStatusDescription: text, eventTimestamp: timeOf(store, 2 * HOUR_MS), note: printed(draw, asked) }]
  await store.poll({ asked, trackingIds, statuses, extra: { reference: printed(draw, asked) } })
}

async function join(store: StoreToErase, draw: Draw, first: string, other: string): Promise<void> {
  store.pass(MINUTE_MS)
  if (draw.below(2) === 0) await store.push({ trackingIds: [other, first], eventTime: timeOf(store, 0) })
  else await answer(store, draw, other, [first])
}

/** Claims what is due, and refuses it with an answer that names the parcel. */
async function refuseDue({ writes, now, pass }: StoreToErase, draw: Draw, parcels: readonly Names[]): Promise<void> {
  pass(10 * MINUTE_MS)
  const claim = { inFlight: {}, allowance: {}, claimsMax: 20, nowMs: now() }
  const { claimed } = await writes.dispatchRound({ ...claim, settled: [] })
  const settled = claimed.map(({ body, previousSequence: _previous, ...delivery }) => {
    const about = parcels.find((names) => names.some((name) => Buffer.from(body ?? []).includes(name)))?.[0] ?? ''
    const answerStart = Buffer.from(`no order for ${printed(draw, about)}`)
    const result = { kind: 'rejected', status: draw.pick([404, 500]), answerStart, durationMs: 1, retryAfterMs: null } as const
    return { ...delivery, atMs: now(), random: 0, result }
  })
  await writes.dispatchRound({ ...claim, settled })
}

/** Passes the time after which ended deliveries are removed. */
async function passRetention({ writes, pass, now }: StoreToErase): Promise<void> {
  for (let day = 0; day < 32; day++) {
    pass(DAY_MS)
    for (let turn = 0; turn < 40 && !(await writes.prune({ nowMs: now() })).isDone; turn++);
  }
}

async function hold(store: StoreToErase, body: Uint8Array, contentEncoding: string | null): Promise<void> {
  await store.record(parsePush({ body, contentEncoding, receivedAtMs: store.now(), keyIndex: 0 }))
}

/** Stores what names a parcel without being a part of it: held and refused pushes, orders, operator events and jobs. */
async function mention(store: StoreToErase, draw: Draw, name: string): Promise<void> {
  const { writes, now } = store
  const text = printed(draw, name)
  const bodies = [
    JSON.stringify({ trackingIds: [text] }),
    JSON.stringify({ order: { parcels: { [text]: 1 } } }),
    JSON.stringify({ inner: JSON.stringify({ id: text }) }),
    JSON.stringify({ id: name }).replace(name[0] ?? '', `\\u00${(name.charCodeAt(0) || 0).toString(16)}`),
    `trackingIds=${text}`,
    pushBody({ trackingIds: [name], eventTime: 'soon' }).toString(),
    pushBody({ trackingIds: [name], eventTime: '2020-01-01T10:00:00Z' }).toString(),
  ]
  const body = Buffer.from(draw.pick(bodies))
  await hold(store, body, null)
  if (draw.below(2) === 0) await hold(store, gzipSync(body), 'gzip')
  await writes.dismissHeld({ reason: null, limit: draw.below(3), after: 0, upTo: Number.MAX_SAFE_INTEGER })
  await writes.keepRefusal({ ...REFUSAL, atMs: now(), headers: { 'user-agent': `carrier/${text}`, 'x-request-id': name } })
  const order = (action: OperatorAction['action'], detail: OperatorAction['detail']): OperatorAction => ({
    atMs: now(),
    by: OPERATOR,
    action,
    target: { kind: 'parcel', id: name },
    detail,
  })
  await writes.recordAction(order('deliveries.replayed', { parcel: name, count: 2 }))
  await writes.recordAction(order('parcel.refreshed', { outcome: 'recorded' }))
  const failure = { status: 404, reason: null, answer: `no order for ${text}` }
  await writes.recordOperatorEvent(
    { event: 'endpoint_failing', endpoint: { id: '1', name: 'stays' }, since: new Date(now()).toISOString(), failure },
    now(),
  )
}
