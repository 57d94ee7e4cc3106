import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { createCourier } from '../../../support/delivery/courier.ts'
import { endpointNamed } from '../../../support/delivery/unnamed.ts'
import { MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const REMOVE_AFTER_MS = 15 * MINUTE_MS

async function openNamed(engine: Engine) {
  const store = await openStore(NOON, engine)
  const { writes, reads } = store
  const name = (...names: readonly string[]) => writes.syncEndpoints(names.map(endpointNamed), NOON, null)
  await name('shop')
  const states = async () => (await reads.listEndpoints()).map(({ endpoint, disabled }) => [endpoint.id, endpoint.name, disabled])
  const waiting = async (id: string) => (await reads.countBacklogs([id])).get(id)?.waiting
  const look = (passedMs: number) => writes.removeUnnamedEndpoints({ names: [], nowMs: NOON, passedMs, removeAfterMs: REMOVE_AFTER_MS })
  const [id = ''] = (await reads.listEndpoints()).map(({ endpoint }) => endpoint.id)
  return { ...store, name, states, waiting, look, id, courier: createCourier(writes, NOON) }
}

describe.each(engines)('7.4: an endpoint that no config names on $name', { timeout: 60_000 }, (engine) => {
  test('is paused and queues all events; naming it again resumes it with its id', async () => {
    const { push, name, states, waiting, courier, id } = await openNamed(engine)
    await push({ trackingIds: ['1001'] })
    await name('other')
    await push({ trackingIds: ['1002'] })
    expect((await states())[0]).toEqual([id, 'shop', 'unnamed'])
    await courier.drain()
    expect(await waiting(id)).toBe(2)
    await name('shop', 'other')
    expect((await states())[0]).toEqual([id, 'shop', null])
    await courier.drain()
    expect([await waiting(id), courier.wrong]).toEqual([0, []])
  })

  test('is removed when the relay itself has counted removeAfter, whatever the clock says', async () => {
    const { name, states, look, id } = await openNamed(engine)
    await name()
    expect(await look(0)).toEqual([])
    for (let minute = 1; minute < 15; minute++) expect(await look(MINUTE_MS)).toEqual([])
    expect(await states()).toEqual([[id, 'shop', 'unnamed']])
    expect(await look(MINUTE_MS)).toEqual(['shop'])
    expect(await states()).toEqual([])
  })

  test('waits the whole removeAfter again after the config has named it in between', async () => {
    const { name, states, look } = await openNamed(engine)
    await name()
    expect(await look(REMOVE_AFTER_MS - 1)).toEqual([])
    await name('shop')
    await name()
    expect(await look(1)).toEqual([])
    expect((await states()).map(([, , disabled]) => disabled)).toEqual(['unnamed'])
  })

  test('can be deleted at once, but not changed', async () => {
    const { writes, name, states, id } = await openNamed(engine)
    expect(await writes.removeEndpoint({ id, nowMs: NOON })).toBe('read_only')
    await name()
    const enabling = { id, change: { enabled: true }, key: null, nowMs: NOON }
    expect(await writes.changeEndpoint(enabling)).toEqual({ kind: 'read_only' })
    expect(await writes.removeEndpoint({ id, nowMs: NOON })).toBe('done')
    expect(await states()).toEqual([])
  })

  test('is disabled for its earlier reason when it is named again', async () => {
    const { writes, push, name, states, id } = await openNamed(engine)
    await push({ trackingIds: ['1001'] })
    const none = { inFlight: {}, allowance: {}, claimsMax: 1, nowMs: NOON }
    const { claimed } = await writes.dispatchRound({ ...none, settled: [] })
    const result = { kind: 'rejected', status: 410, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
    const settled = claimed.map(({ body: _body, previousSequence: _previous, ...delivery }) => ({
      ...delivery,
      result,
      atMs: NOON,
      random: 0.5,
    }))
    await writes.dispatchRound({ ...none, claimsMax: 0, settled })
    expect(await states()).toEqual([[id, 'shop', 'gone']])
    await name()
    expect(await states()).toEqual([[id, 'shop', 'unnamed']])
    await name('shop')
    expect(await states()).toEqual([[id, 'shop', 'gone']])
  })
})
