import { describe, expect, test } from 'vitest'
import { NO_CONTEXT, type OrderContext } from '../../../../src/core/domain/history/order-context.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { orderDuty } from '../../../../src/insight/order/order.duty.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { tablesThatHold } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../../support/store/moving.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const CONTEXT: OrderContext = { reference: 'ORDER-1207', labels: { priority: 'high' }, note: 'A gift' }

async function openOrders(engine: Engine, place: string | null = null) {
  const store = await openErasures(engine, place)
  const { writes, reads } = store
  return {
    ...store,
    put: (identifier: string, context: OrderContext) => writes.saveOrder({ identifier, context, nowMs: store.now() }),
    orderOf: async (identifier: string) => {
      const order = (await reads.inspectParcel(identifier))?.order ?? null
      if (order === null) return null
      const { reference, labels, note } = order
      return { reference, labels, note }
    },
    feed: async () => {
      const { items } = await reads.readFeed({ after: 0, limit: 500 })
      return items.map(({ kind }) => kind)
    },
  }
}

describe.each(engines)('what is said of the order of a parcel, on $name', (engine) => {
  test('8.2: a known parcel gets it, and is polled as before', async () => {
    const { push, put, orderOf, reads } = await openOrders(engine)
    await push()
    const before = (await reads.inspectParcel('1001'))?.state
    expect(await orderOf('1001')).toEqual(NO_CONTEXT)
    expect(await put('1001', CONTEXT)).toMatchObject({ created: false, changed: true })
    expect(await orderOf('1001')).toEqual(CONTEXT)
    expect((await reads.inspectParcel('1001'))?.state).toEqual(before)
    expect(await put('1001', NO_CONTEXT)).toMatchObject({ changed: true })
    expect(await orderOf('1001')).toEqual(NO_CONTEXT)
  })

  test('8.2: an unknown identifier is watched from then on, and polled within two minutes', async () => {
    const { put, orderOf, writes, pass } = await openOrders(engine)
    expect(await put('NEW0001', CONTEXT)).toMatchObject({ created: true, changed: true })
    expect(await orderOf('NEW0001')).toEqual(CONTEXT)
    const due = await writes.claimDuePolls({ nowMs: pass(2 * MINUTE_MS), limit: 10, leaseMs: 1000 })
    expect(due.map(({ identifiers }) => identifiers)).toEqual([['NEW0001']])
  })

  test('8.4: a change is an update in the feed and no delivery; the same again is nothing', async () => {
    const { push, put, feed, path } = await openOrders(engine)
    await push()
    await put('1001', CONTEXT)
    expect(await put('1001', { ...CONTEXT })).toMatchObject({ changed: false })
    expect(await feed()).toEqual(['entry', 'update'])
    expect(await storedNumber(path, 'select count(*) from delivery')).toBe(0)
    expect(await storedNumber(path, 'select max(sequence) from order_context')).toBe(2)
  })

  test('8.3: on joins in any order the last said counts wholly', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const { push, put, orderOf } = await openOrders(engine)
      const { below, pick } = drawWith(seeded(seed))
      const names = Array.from({ length: 5 }, (_, nth) => `100${nth}`)
      const groups = new Map(names.map((name) => [name, { members: new Set([name]), said: NO_CONTEXT, at: 0 }]))
      for (const name of names) await push({ trackingIds: [name] })
      for (let step = 1; step <= 14; step++) {
        const name = pick(names)
        const [one, other] = [groups.get(name), groups.get(pick(names))]
        if (one === undefined || other === undefined) throw new Error('no group')
        if (below(2) === 0) {
          const said = pick([
            NO_CONTEXT,
            CONTEXT,
            { ...NO_CONTEXT, reference: `R${step}` },
            { ...NO_CONTEXT, labels: { step: String(step) } },
          ])
          const saved = await put(name, said)
          expect(saved?.changed).toBe(JSON.stringify(said) !== JSON.stringify(one.said))
          if (saved?.changed === true) Object.assign(one, { said, at: step })
        } else if (one !== other) {
          await push({ trackingIds: [...one.members, ...other.members], status: `S${step}` })
          const last = one.at >= other.at ? one : other
          const joined = { members: new Set([...one.members, ...other.members]), said: last.said, at: last.at }
          for (const member of joined.members) groups.set(member, joined)
        }
        for (const [member, { said }] of groups) expect([seed, step, member, await orderOf(member)]).toEqual([seed, step, member, said])
      }
    }
  })

  test('8.2: a line of a list replaces what it names; the list sent again changes nothing', async () => {
    const { writes, put, orderOf, feed, now } = await openOrders(engine)
    await put('OLD0001', CONTEXT)
    const list = {
      identifiers: ['OLD0001', 'NEW0001', 'NEW0002', 'NEW0001'],
      orders: [{ labels: { shop: 'north' } }, { reference: 'A' }, null, { labels: { shop: 'south' } }],
      nowMs: now(),
    }
    for (let times = 0; times < 2; times++) {
      await writes.watchMany(list)
      expect(await orderOf('OLD0001')).toEqual({ ...CONTEXT, labels: { shop: 'north' } })
      expect(await orderOf('NEW0001')).toEqual({ reference: 'A', labels: { shop: 'south' }, note: null })
      expect(await orderOf('NEW0002')).toEqual(NO_CONTEXT)
      expect(await feed()).toEqual(['update', 'update', 'update'])
    }
  })

  test('8.5: an erasure takes all of it, what a join replaced included, and a tombstone takes no more', async () => {
    const store = await openOrders(engine)
    const { push, put, forget, path, writes, now } = store
    await push({ trackingIds: ['GONE0001'] })
    await push({ trackingIds: ['GONE0002'], status: 'Other' })
    await put('GONE0001', { reference: 'QQREPLACED', labels: { a: 'QQLABEL' }, note: 'QQNOTE' })
    const action = {
      atMs: now(),
      by: OPERATOR,
      action: 'parcel.order_changed',
      target: { kind: 'parcel', id: 'GONE0002' },
      detail: {},
    } as const
    await writes.saveOrder({ identifier: 'GONE0002', context: { ...CONTEXT, reference: 'QQLAST' }, nowMs: now(), action })
    await push({ trackingIds: ['GONE0001', 'GONE0002'], status: 'Third' })
    const held = ['audit: QQLAST', 'audit: QQREPLACED', 'order_context: QQLAST']
    expect((await tablesThatHold(path, ['QQREPLACED', 'QQLAST'])).toSorted()).toEqual(held)
    expect(await forget('GONE0001')).toMatchObject({ removed: { parcels: 1 } })
    expect(await tablesThatHold(path, ['QQREPLACED', 'QQLABEL', 'QQNOTE', 'QQLAST', 'GONE0001', 'GONE0002'])).toEqual([])
    expect(await storedNumber(path, 'select count(*) from order_context')).toBe(0)
    expect(await put('GONE0002', CONTEXT)).toBeNull()
    expect(await storedNumber(path, 'select count(*) from order_context')).toBe(0)
  })
})

describe.each(engines)('orders of parcels that are gone, on $name', (engine) => {
  test('8.5: the duty removes what an older replica has left when it erased a parcel, and nothing else', async () => {
    const { put, orderOf, path, writes, reads } = await openOrders(engine)
    for (const id of ['KEPT0001', 'LOST0001', 'LOST0002', 'KEPT0002']) await put(id, { ...CONTEXT, note: `QQ${id}` })
    for (const id of ['LOST0001', 'LOST0002']) {
      const parcelId = await storedNumber(path, `select parcel_id from identifier where value = '${id}'`)
      await changeStoredRows(path, 'delete from identifier where parcel_id = ?', parcelId)
      await changeStoredRows(path, 'delete from parcel where id = ?', parcelId)
    }
    const kept = await orderOf('KEPT0002')
    // A page goes on past rows whose parcels are gone.
    const asked = { prefix: null, reference: 'ORDER-1207', status: null, stopped: null, after: null, limit: 2 }
    const notes = (await reads.listParcels(asked)).parcels.map(({ order }) => order.note)
    expect(notes).toEqual(['QQKEPT0001', 'QQKEPT0002'])
    expect(await writes.dropLostOrders({ after: 0, limit: 1 })).toEqual(expect.any(Number))
    const { pass } = orderDuty({ write: writes, clock: { now: () => NOON, monotonic: () => 0 } })
    expect(await pass()).toBe('idle')
    expect(await storedNumber(path, 'select count(*) from order_context')).toBe(2)
    expect(await orderOf('KEPT0002')).toEqual(kept)
  })

  test('8.5: a PUT beside an erasure leaves nothing of a parcel that is gone', async () => {
    const { push, put, forget, path } = await openOrders(engine)
    for (let nth = 0; nth < 12; nth++) {
      const id = `BOTH${1000 + nth}`
      await push({ trackingIds: [id] })
      await Promise.all(nth % 2 === 0 ? [put(id, CONTEXT), forget(id)] : [forget(id), put(id, CONTEXT)])
    }
    expect(await storedNumber(path, 'select count(*) from order_context')).toBe(0)
  })
})

test.each(DIRECTIONS)('8.5: a move from $name carries it', async ({ from, to }) => {
  const [old, next] = [await placeOf(from), await placeOf(to)]
  const before = await openStore(NOON, from, old.place)
  await before.push()
  await before.writes.saveOrder({ identifier: '1001', context: CONTEXT, nowMs: NOON })
  await before.writes.close()
  await moveStore(old, next)
  const after = await openStore(NOON, to, next.place)
  expect((await after.reads.inspectParcel('1001'))?.order).toMatchObject({ ...CONTEXT, sequence: 2 })
})
