import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ClaimedDelivery } from '../../../src/core/domain/delivery/dispatch-round.ts'
import { ENDPOINT_EVENTS, type EndpointFilters, noFilters } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'

const said = z.object({ event: z.string().optional(), status: z.string().optional() })
const EVERY = { events: ENDPOINT_EVENTS }
/** What an endpoint was sent: statuses of entries, names of events. */
const sentIn = (deliveries: readonly ClaimedDelivery[]) =>
  deliveries.map(({ body, event }) => {
    const named = said.parse(JSON.parse(String(body)))
    expect(event).toBe(named.event)
    return named.event ?? named.status
  })

describe.each(engines)('what endpoints are sent of watchdogs, on $name', (engine) => {
  test('9.7: who asks for them is sent them behind the entries of the parcel; who does not is sent none', async () => {
    const { scan, look, pass, now, writes, path } = await openWatched(engine)
    const [shop, relay, news] = [
      await addEndpoint(writes, NOON, { name: 'shop', ...EVERY }),
      await addEndpoint(writes, NOON, { name: 'relay' }),
      await addEndpoint(writes, NOON, { name: 'news', events: ['parcel.recovered'] }),
    ]
    const context = { reference: 'ORDER-7', labels: { shop: 'north' }, note: 'stays' }
    await scan('Ingested', NOON)
    await writes.saveOrder({ identifier: '1001', context, nowMs: now() })
    pass(49 * HOUR_MS)
    await look()
    await scan('TerminalArrived', NOON + 48.5 * HOUR_MS)
    await look()
    const sent = await shop.take()
    expect(sentIn(sent)).toEqual(['Ingested', 'parcel.stalled', 'TerminalArrived', 'parcel.recovered'])
    for (const [nth, { previousSequence }] of sent.entries()) expect(previousSequence).toBe(sent[nth - 1]?.sequence ?? 0)
    expect(sent.map(({ order }) => order?.reference)).toEqual(Array(4).fill('ORDER-7'))
    const parcel = { id: String(sent[0]?.parcelId), identifiers: ['1001'], reference: 'ORDER-7', labels: { shop: 'north' } }
    expect(JSON.parse(String(sent[1]?.body))).toEqual({
      event: 'parcel.stalled',
      at: new Date(NOON + 49 * HOUR_MS).toISOString(),
      rule: 'no-scan',
      since: new Date(NOON + 48 * HOUR_MS).toISOString(),
      checked: false,
      parcel: { ...parcel, latest: { status: 'Ingested', detailedStatus: 'Ingested', eventTimestamp: expect.any(String) } },
    })
    expect(JSON.parse(String(sent[3]?.body))).toMatchObject({
      because: 'observation',
      parcel: { ...parcel, latest: { status: 'TerminalArrived' } },
    })
    expect(sentIn(await relay.take())).toEqual(['Ingested', 'TerminalArrived'])
    expect(sentIn(await news.take())).toEqual(['parcel.recovered'])
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(2)
  })

  test('9.7: the filters of an endpoint look at the latest entry, the distribution type and the order', async () => {
    const { scan, look, pass, now, writes, path } = await openWatched(engine)
    const filtered = (filters: Partial<EndpointFilters>) =>
      addEndpoint(writes, NOON, { name: JSON.stringify(filters), events: ['parcel.stalled'], filters: { ...noFilters, ...filters } })
    const takers = [
      await filtered({ status: ['Ingested'] }),
      await filtered({ detailedStatus: ['Ingested'] }),
      await filtered({ distributionType: ['Mailbox'] }),
      await filtered({ label: ['shop=north'] }),
      await filtered({ displayToConsumer: true }),
    ]
    const others = [
      await filtered({ status: ['Created'] }),
      await filtered({ distributionType: ['PickupPoint'] }),
      await filtered({ label: ['shop=south'] }),
      await filtered({ displayToConsumer: false }),
    ]
    await scan('Created', NOON - HOUR_MS, { distributionType: 'Mailbox' })
    await scan('Ingested', NOON, { distributionType: 'Mailbox' })
    await writes.saveOrder({ identifier: '1001', context: { reference: null, labels: { shop: 'north' }, note: null }, nowMs: now() })
    pass(49 * HOUR_MS)
    await look()
    for (const { take } of takers) expect(sentIn(await take())).toEqual(['parcel.stalled'])
    for (const { take } of others) expect(await take()).toEqual([])
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(1)
  })

  test('a body that no endpoint gets is not made', async () => {
    const { scan, look, pass, told, writes, path } = await openWatched(engine)
    await addEndpoint(writes, NOON, { events: ['entry', 'parcel.recovered'] })
    await scan('Ingested', NOON)
    pass(49 * HOUR_MS)
    await look()
    expect(await told()).toEqual(['stalled no-scan'])
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(0)
  })

  test('a rule that is gone says so', async () => {
    const { scan, look, pass, take, writes } = await openWatched(engine, [aRule()])
    const shop = await addEndpoint(writes, NOON, { events: ['parcel.recovered'] })
    await scan('Ingested', NOON)
    pass(49 * HOUR_MS)
    await look()
    await take([])
    await look()
    const [sent] = await shop.take()
    expect(JSON.parse(String(sent?.body))).toMatchObject({ event: 'parcel.recovered', because: 'rule' })
  })

  test('an erasure takes the bodies that wait, and those that were sent', async () => {
    const { scan, look, pass, forget, writes, path } = await openWatched(engine)
    const shop = await addEndpoint(writes, NOON, EVERY)
    await scan('Ingested', NOON, { trackingIds: ['GONE0001'] })
    pass(49 * HOUR_MS)
    await look()
    await shop.take()
    await scan('TerminalArrived', NOON + HOUR_MS, { trackingIds: ['GONE0001'] })
    await look()
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(2)
    await forget('GONE0001')
    for (const table of ['composed_event', 'delivery']) expect(await storedNumber(path, `select count(*) from ${table}`)).toBe(0)
    expect(await shop.take()).toEqual([])
  })

  test('what is told of parcels that are joined later is sent once each, in the order of the sequences', async () => {
    const { scan, look, pass, writes } = await openWatched(engine)
    const shop = await addEndpoint(writes, NOON, EVERY)
    await scan('Ingested', NOON, { trackingIds: ['1001'] })
    await scan('Ingested', NOON, { trackingIds: ['1002'] })
    pass(49 * HOUR_MS)
    await look()
    await scan('TerminalArrived', NOON + 48.5 * HOUR_MS, { trackingIds: ['1001', '1002'] })
    await look()
    const sent = await shop.take()
    expect(sentIn(sent)).toEqual(['Ingested', 'Ingested', 'parcel.stalled', 'parcel.stalled', 'TerminalArrived', 'parcel.recovered'])
    expect(sent.map(({ sequence }) => sequence)).toEqual(sent.map(({ sequence }) => sequence).toSorted((a, b) => a - b))
  })

  test('7.1: an endpoint that catches up is sent what was told since it began, in its place and once', async () => {
    const { scan, look, pass, now, writes, path } = await openWatched(engine)
    const shop = await addEndpoint(writes, NOON, { name: 'shop', ...EVERY })
    await scan('Ingested', NOON)
    pass(49 * HOUR_MS)
    await look()
    await scan('TerminalArrived', NOON + 48.5 * HOUR_MS)
    const late = await addEndpoint(writes, now(), { name: 'late', from: 0, ...EVERY })
    const quiet = await addEndpoint(writes, now(), { name: 'quiet', from: 0 })
    const news = await addEndpoint(writes, now(), { name: 'news', from: 0, events: ['parcel.recovered'] })
    const after = await addEndpoint(writes, now(), { name: 'after', ...EVERY })
    // One is told while they catch up: one event a round.
    const step = () => writes.replayFeed({ limit: 1, nowMs: now() })
    await step()
    await look()
    await scan('Last', now())
    while (!(await step()).isDone);
    pass(HOUR_MS)
    await scan('Ingested', now())
    pass(49 * HOUR_MS)
    await look()
    const all = ['Ingested', 'parcel.stalled', 'TerminalArrived', 'parcel.recovered', 'Last', 'Ingested', 'parcel.stalled']
    const [sent, seen] = [await late.take(), await shop.take()]
    expect(sentIn(seen)).toEqual(all)
    expect(sentIn(sent)).toEqual(all)
    expect(sent.map(({ sequence }) => sequence)).toEqual(seen.map(({ sequence }) => sequence))
    for (const [nth, { previousSequence }] of sent.entries()) expect(previousSequence).toBe(sent[nth - 1]?.sequence ?? 0)
    expect(sentIn(await quiet.take())).toEqual(all.filter((one) => !one.includes('.')))
    expect(sentIn(await news.take())).toEqual(['parcel.recovered'])
    expect(sentIn(await after.take())).toEqual(all.slice(3))
    const perEndpoint =
      'select count(*) from (select endpoint_id, sequence from delivery group by endpoint_id, sequence having count(*) > 1) as twice'
    expect(await storedNumber(path, perEndpoint)).toBe(0)
  })

  test('7.1: what was told before, of a body that nobody had, is composed when it is read', async () => {
    const { scan, look, pass, now, writes, path } = await openWatched(engine)
    await scan('Ingested', NOON)
    pass(49 * HOUR_MS)
    await look()
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(0)
    await scan('TerminalArrived', NOON + 48.5 * HOUR_MS)
    pass(HOUR_MS)
    await look()
    const late = await addEndpoint(writes, now(), { from: 0, ...EVERY })
    while (!(await writes.replayFeed({ limit: 10, nowMs: now() })).isDone);
    const [, stalled, , recovered] = await late.take()
    expect(JSON.parse(String(stalled?.body))).toMatchObject({
      at: new Date(NOON + 49 * HOUR_MS).toISOString(),
      since: new Date(NOON + 48 * HOUR_MS).toISOString(),
      checked: false,
    })
    expect(JSON.parse(String(recovered?.body))).toMatchObject({
      event: 'parcel.recovered',
      at: new Date(NOON + 50 * HOUR_MS).toISOString(),
      because: null,
    })
  })

  test('a parcel that is joined or erased while an endpoint catches up: each breach is told once, or not at all', async () => {
    const { scan, look, pass, now, forget, writes } = await openWatched(engine)
    for (const id of ['1001', '1002', 'GONE0001']) await scan('Ingested', NOON, { trackingIds: [id] })
    pass(49 * HOUR_MS)
    await look()
    await scan('Created', NOON - HOUR_MS, { trackingIds: ['1001', '1002'] })
    await forget('GONE0001')
    const late = await addEndpoint(writes, now(), { from: 0, events: ['parcel.stalled', 'parcel.recovered'] })
    while (!(await writes.replayFeed({ limit: 2, nowMs: now() })).isDone);
    const sent = await late.take()
    expect(sentIn(sent)).toEqual(['parcel.stalled'])
    expect(JSON.parse(String(sent[0]?.body))).toMatchObject({ parcel: { identifiers: ['1001', '1002'] } })
  })
})
