import { describe, expect, test } from 'vitest'
import { type AttemptResult, CLAIMS_PER_ATTEMPT } from '../../../../src/core/domain/delivery/delivery.ts'
import type { ClaimedDelivery, DispatchRound, SettledAttempt } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import type { EndpointSettings } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { createDispatcher } from '../../../../src/core/flow/delivery/dispatching/dispatcher.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint, endpointSettings } from '../../../support/delivery/stored-endpoint.ts'
import { deliverOptions } from '../../../support/history/policy.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const CONCURRENCY = 2
const kept = { durationMs: 1, answerStart: new Uint8Array() }

/** Opens a relay with its own store, and an endpoint that answers when the test says so. It uses no network. */
async function openRelay(engine: Engine, settings: Partial<EndpointSettings> = {}) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON, { concurrency: CONCURRENCY, ...settings })
  const underWay: ((result?: AttemptResult) => void)[] = []
  const sent: string[] = []
  const turns: DispatchRound[] = []
  const did: ('turn' | 'post' | 'breath')[] = []
  let gate: Promise<void> | undefined
  let hasKey = true
  let isFailing = false
  let isBusy = false
  const wakes: (number | null)[] = []
  const relay = createDispatcher(
    {
      held: allEndpoints,
      write: {
        dispatchRound: async (turn) => {
          turns.push(turn)
          did.push('turn')
          await gate
          if (isFailing) throw new Error('the disk is full')
          return { ...(await store.writes.dispatchRound(turn)), isBusy }
        },
      },
      sender: {
        post({ body }, onEnd) {
          did.push('post')
          sent.push(Buffer.from(body).toString())
          underWay.push((result = { kind: 'accepted', status: 200, ...kept }) => onEnd(result))
        },
      },
      signerOf: () => (hasKey ? { headers: () => ({}), hasNext: false, fingerprints: { current: '00000000', next: null } } : null),
      routeOf: () => ({}),
      clock: { now: store.now, monotonic: store.now },
      random: () => 0.5,
      meter: { deliveryAttempted: () => {} },
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      wake: (atMs) => void wakes.push(atMs),
      yieldToIo: async () => {
        await settled()
        did.push('breath')
      },
    },
    { relayId: 'relay', claimsMax: 100, perEndpoint: () => deliverOptions.perEndpoint, claimsPerAttempt: CLAIMS_PER_ATTEMPT },
  )
  /** Ends the oldest attempt under way, and waits for the dispatcher to react. */
  const answer = async (result?: AttemptResult) => {
    underWay.shift()?.(result)
    await settled()
  }
  const change = async (change: Partial<EndpointSettings>) =>
    expect(await store.writes.changeEndpoint({ id, change, key: null, nowMs: store.now() })).toMatchObject({ kind: 'done' })
  const loseKey = () => {
    hasKey = false
  }
  const answerAll = async () => {
    for (const end of underWay.splice(0)) end()
    await settled()
  }
  const look = async () => {
    relay.look()
    await relay.pass()
    await settled()
  }
  const pushParcels = async (count: number) => {
    for (let parcel = 0; parcel < count; parcel++) await store.push({ trackingIds: [`${1000 + parcel}`] })
  }
  const failTurns = (failing: boolean) => {
    isFailing = failing
  }
  const setBusy = (busy: boolean) => {
    isBusy = busy
  }
  /** Makes rounds wait until the returned function is called. */
  const holdTurns = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    return resolve
  }
  return {
    ...store,
    elapse: store.pass,
    relay,
    underWay,
    sent,
    turns,
    did,
    wakes,
    answer,
    answerAll,
    look,
    pushParcels,
    holdTurns,
    change,
    loseKey,
    failTurns,
    setBusy,
  }
}

/** Waits until the dispatcher has reacted to what the test did. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Opens a store without a dispatcher, so that the test asks for rounds itself. */
async function openTurns(engine: Engine) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON, endpointSettings)
  const turn = (rest: Partial<DispatchRound> = {}) =>
    store.writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: store.now(), ...rest })
  const settle = ({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery): SettledAttempt => {
    return { ...delivery, result: { kind: 'accepted', status: 200, ...kept }, atMs: store.now(), random: 0.5 }
  }
  return { ...store, id, turn, settle }
}

const held = (...claimed: readonly ClaimedDelivery[]): DispatchRound['inFlight'] =>
  Object.fromEntries([...Map.groupBy(claimed, ({ endpointId }) => endpointId)].map(([id, of]) => [id, of.map((one) => one.deliveryId)]))

describe.each(engines)('the dispatcher on $name', (engine) => {
  test('further attempts replace ended ones until too many results are unsaved', async () => {
    const { underWay, sent, turns, answer, answerAll, look, pushParcels } = await openRelay(engine)
    await pushParcels(9)
    await look()
    expect(underWay).toHaveLength(CONCURRENCY)
    await answer()
    expect([underWay.length, sent.length]).toEqual([CONCURRENCY, CONCURRENCY + 1])
    for (let nth = 0; nth < 9; nth++) await answerAll()
    const claims = CLAIMS_PER_ATTEMPT * CONCURRENCY
    expect([underWay.length, sent.length, turns.length]).toEqual([0, claims, 1])
    await look()
    expect(turns.at(-1)?.settled).toHaveLength(claims)
    expect(underWay).toHaveLength(CONCURRENCY)
    for (let nth = 0; nth < 9; nth++) await answerAll()
    expect(sent).toHaveLength(9)
    expect(new Set(sent).size).toBe(9)
  })

  test('while pushes keep the writer busy, rounds are delayed and settle more deliveries at once', async () => {
    const { relay, turns, wakes, now, elapse, answerAll, look, pushParcels, setBusy } = await openRelay(engine)
    await pushParcels(20)
    setBusy(true)
    await look()
    await answerAll()
    elapse(4)
    await look()
    expect(turns).toHaveLength(1)
    expect(wakes.at(-1)).toBe(now() + 6)
    for (let nth = 0; nth < 3; nth++) await answerAll()
    elapse(6)
    setBusy(false)
    await relay.pass()
    expect(turns.map(({ settled }) => settled.length)).toEqual([0, CLAIMS_PER_ATTEMPT * CONCURRENCY])
    await answerAll()
    await look()
    expect(turns).toHaveLength(3)
  })

  test('an endpoint with a rate gets no more claims than it may be sent at once', async () => {
    const { turns, underWay, answerAll, look, pushParcels } = await openRelay(engine, { ratePerSecond: 5 })
    await pushParcels(5)
    // The dispatcher does not know the endpoint's rate before the first round.
    for (let nth = 0; nth < 3; nth++) {
      await look()
      await answerAll()
    }
    expect(turns.map(({ settled: { length } }) => length)).toEqual([0, 1, CONCURRENCY])
    expect(underWay).toHaveLength(0)
  })

  test('an endpoint that refuses everything is probed, and its claims are given back', async () => {
    const failing = await openRelay(engine)
    await failing.pushParcels(12)
    await failing.look()
    const failed: AttemptResult = { kind: 'rejected', status: 500, retryAfterMs: null, ...kept }
    const claims = CLAIMS_PER_ATTEMPT * CONCURRENCY
    for (let nth = 0; nth < claims; nth++) await failing.answer(failed)
    for (const probes of [0, 1]) {
      await failing.look()
      expect([failing.underWay.length, failing.sent.length]).toEqual([probes, claims + probes])
      failing.elapse(5000)
      await failing.look()
      expect([failing.underWay.length, failing.sent.length]).toEqual([1, claims + 1])
    }
    await failing.answer()
    await failing.look()
    expect(failing.underWay).toHaveLength(CONCURRENCY)
  })

  test('deliveries of a disabled endpoint wait, and are claimed at once when it is enabled', async () => {
    const { sent, answer, look, pushParcels, change } = await openRelay(engine)
    await pushParcels(4)
    await look()
    await change({ enabled: false })
    await look()
    await answer()
    expect(sent).toHaveLength(CONCURRENCY)
    await look()
    await change({ enabled: true })
    await look()
    await answer()
    await answer()
    expect(sent).toHaveLength(4)
    expect(new Set(sent).size).toBe(4)
  })

  test('7.4: an endpoint that answers 410 is sent nothing more, even during a round', async () => {
    const { relay, sent, answer, look, pushParcels, holdTurns } = await openRelay(engine)
    await pushParcels(9)
    await look()
    for (let nth = 0; nth < CONCURRENCY; nth++) await answer()
    const letTurnsEnd = holdTurns()
    const passing = relay.pass()
    const before = sent.length
    await answer({ kind: 'rejected', status: 410, retryAfterMs: null, ...kept })
    letTurnsEnd()
    await passing
    await look()
    await answer()
    await look()
    expect(sent).toHaveLength(before)
  })

  test('after a change of an endpoint its deliveries wait until the new settings are loaded', async () => {
    const { relay, sent, answer, change, look, pushParcels, holdTurns } = await openRelay(engine)
    await pushParcels(5)
    await look()
    await change({ enabled: true })
    relay.review()
    const letTurnsEnd = holdTurns()
    const passing = relay.pass()
    await answer()
    expect(sent).toHaveLength(CONCURRENCY)
    letTurnsEnd()
    await passing
    expect(sent).toHaveLength(CONCURRENCY + 1)
  })

  test('a lower concurrency gives waiting claims back, and they are sent later in order', async () => {
    const { sent, turns, answer, look, pushParcels, change } = await openRelay(engine, { concurrency: 4 })
    await pushParcels(8)
    await look()
    await change({ concurrency: 2 })
    await look()
    expect(Object.values(turns.at(-1)?.inFlight ?? {}).flat()).toHaveLength(8)
    await look()
    expect(Object.values(turns.at(-1)?.inFlight ?? {}).flat()).toHaveLength(CLAIMS_PER_ATTEMPT * 2)
    for (let nth = 0; nth < 8; nth++) {
      await answer()
      await look()
    }
    expect(sent).toHaveLength(8)
    expect(new Set(sent).size).toBe(8)
  })

  test('while results cannot be saved nothing is sent; afterwards each delivery is sent once', async () => {
    const { sent, answerAll, look, elapse, pushParcels, failTurns } = await openRelay(engine)
    await pushParcels(5)
    await look()
    failTurns(true)
    await look()
    await answerAll()
    expect(sent).toHaveLength(CONCURRENCY)
    failTurns(false)
    elapse(1000)
    for (let nth = 0; nth < 4; nth++) {
      await look()
      await answerAll()
    }
    expect(sent).toHaveLength(5)
    expect(new Set(sent).size).toBe(5)
  })

  test('when the key of an endpoint is lost, its waiting deliveries fail', async () => {
    const { sent, turns, look, pushParcels, answer, loseKey } = await openRelay(engine)
    await pushParcels(6)
    await look()
    loseKey()
    await answer()
    await look()
    expect(sent).toHaveLength(CONCURRENCY)
    expect(turns.at(-1)?.settled.map(({ result: { kind } }) => kind)).toEqual(['accepted', ...Array.from({ length: 4 }, () => 'failed')])
  })

  test('after a stop is requested, attempts that end are saved and no others begin', async () => {
    const { relay, sent, turns, answerAll, look, pushParcels } = await openRelay(engine)
    await pushParcels(5)
    await look()
    const stopped = relay.stop()
    await answerAll()
    await stopped
    expect(sent).toHaveLength(CONCURRENCY)
    expect(turns.at(-1)?.settled).toHaveLength(CONCURRENCY)
  })

  test('a round is requested 5 ms after an attempt ends, or once `concurrency` attempts have ended', async () => {
    const { wakes, now, answer, answerAll, look, pushParcels } = await openRelay(engine, { concurrency: 3 })
    await pushParcels(11)
    await look()
    wakes.length = 0
    for (let nth = 0; nth < 4; nth++) await answer()
    expect(wakes).toEqual([now() + 5, null, null])
    // Claim all other deliveries before the wakes are counted.
    await look()
    wakes.length = 0
    for (let nth = 0; nth < 3; nth++) await answerAll()
    expect(wakes).toEqual([now() + 5])
  })

  test('the next round is requested before the claims of the previous round are sent', async () => {
    const { relay, did, answer, look, pushParcels, holdTurns } = await openRelay(engine, { concurrency: 2 })
    await pushParcels(20)
    await look()
    for (let nth = 0; nth < 2; nth++) await answer()
    did.length = 0
    const letTurnsEnd = holdTurns()
    const passing = relay.pass()
    for (let nth = 0; nth < 4; nth++) await answer()
    letTurnsEnd()
    await passing
    // The first two posts send claims of an earlier round.
    expect(did).toEqual(['turn', 'post', 'post', 'turn', 'post', 'post'])
  })

  test('a change that comes after the next round was requested gets another round', async () => {
    const { relay, wakes, turns, answer, look, pushParcels, holdTurns } = await openRelay(engine, { concurrency: 2 })
    await pushParcels(20)
    await look()
    for (let nth = 0; nth < 2; nth++) await answer()
    const letTurnsEnd = holdTurns()
    const passing = relay.pass()
    for (let nth = 0; nth < 4; nth++) await answer()
    letTurnsEnd()
    await passing
    const asked = turns.length
    relay.review()
    wakes.length = 0
    await relay.pass()
    expect([turns.length, wakes.at(-1)]).toEqual([asked, null])
    await relay.pass()
    expect(turns).toHaveLength(asked + 1)
  })

  test('claims are sent a few at a time, with network events handled between', async () => {
    const { did, look, pushParcels } = await openRelay(engine, { concurrency: 6 })
    await pushParcels(6)
    await look()
    expect(did).toEqual(['turn', 'post', 'post', 'post', 'post', 'breath', 'post', 'post'])
  })

  test('the end of an attempt is saved soon even if no further delivery can be claimed', async () => {
    const { wakes, now, answer, look, pushParcels } = await openRelay(engine)
    await pushParcels(8)
    await look()
    await look()
    wakes.length = 0
    for (let nth = 0; nth < CONCURRENCY; nth++) await answer()
    expect(wakes).toEqual([now() + 5, null])
  })

  test('a pass does nothing until ended attempts have waited 5 ms or a delivery may be due', async () => {
    const { relay, turns, answer, look, elapse, pushParcels } = await openRelay(engine, { concurrency: 4 })
    await pushParcels(3)
    await look()
    await answer()
    elapse(4)
    await relay.pass()
    expect(turns).toHaveLength(1)
    elapse(1)
    await relay.pass()
    expect(turns).toHaveLength(2)
    await relay.pass()
    expect(turns).toHaveLength(2)
    await look()
    expect(turns).toHaveLength(3)
  })

  test('a delivery is not claimed again while its claim is reported as in flight', async () => {
    const { push, pass, turn } = await openTurns(engine)
    await push()
    const { claimed } = await turn()
    expect(claimed).toHaveLength(1)
    pass(10 * 365 * 24 * 3_600_000)
    expect(await turn({ inFlight: held(...claimed) })).toMatchObject({ claimed: [], nextAtMs: null })
    expect((await turn()).claimed).toEqual(claimed)
  })

  test('a round finds no more claims than there is room for', async () => {
    const { push, turn, settle } = await openTurns(engine)
    for (let parcel = 0; parcel < 20; parcel++) await push({ trackingIds: [`${1000 + parcel}`] })
    const first = await turn({ claimsMax: 3 })
    const second = await turn({ claimsMax: 3, inFlight: held(...first.claimed) })
    expect([first.more.length, second.more.length]).toEqual([1, 1])
    const rest = await turn({ settled: first.claimed.map(settle), inFlight: held(...second.claimed) })
    const claimed = [first, second, rest].flatMap((report) => report.claimed.map(({ deliveryId }) => deliveryId))
    expect(new Set(claimed).size).toBe(claimed.length)
  })

  test('7.3: a delivery that ends after an earlier one was replayed releases no successor', async () => {
    const { push, now, id, turn, settle, writes } = await openTurns(engine)
    for (const minute of [1, 2, 3]) await push({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
    const { claimed: first } = await turn()
    const { claimed: second } = await turn({ settled: first.map(settle) })
    const { sequence = 0 } = first[0] ?? {}
    await writes.replayDeliveries({
      selection: { endpointId: id, states: ['delivered'], fromSequence: 0, fromMs: 0, deliveryId: null, sequence, parcelId: null },
      to: id,
      after: null,
      untilMs: now(),
      limit: 10,
      nowMs: now(),
    })
    const { claimed: again } = await turn({ settled: second.map(settle) })
    expect(again.map((delivery) => delivery.sequence)).toEqual([sequence])
    const { claimed: last } = await turn({ settled: again.map(settle) })
    expect(last.map((delivery) => delivery.sequence)).toEqual([sequence + 2])
  })

  test('7.3: a push waits for the replay of an earlier event of its parcel', async () => {
    const { push, now, id, turn, settle, writes } = await openTurns(engine)
    const at = (minute: number) => push({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
    await at(1)
    await at(2)
    for (let { claimed } = await turn(); claimed.length > 0; ) ({ claimed } = await turn({ settled: claimed.map(settle) }))
    const selection = { endpointId: id, states: ['delivered'], fromSequence: 0, fromMs: 0, deliveryId: null, parcelId: null } as const
    await writes.replayDeliveries({
      selection: { ...selection, sequence: 1 },
      to: id,
      after: null,
      untilMs: now(),
      limit: 10,
      nowMs: now(),
    })
    const { claimed: first } = await turn()
    await at(3)
    await at(4)
    const refused = first.map(
      (one): SettledAttempt => ({ ...settle(one), result: { kind: 'rejected', status: 500, retryAfterMs: null, ...kept } }),
    )
    const sequences = [first, (await turn({ inFlight: held(...first) })).claimed, (await turn({ settled: refused })).claimed]
    expect(sequences.map((claimed) => claimed.map(({ sequence }) => sequence))).toEqual([[1], [], []])
  })

  test('a late second attempt is recorded, but does not change an ended delivery', async () => {
    const { push, turn, settle, reads } = await openTurns(engine)
    await push()
    const { claimed } = await turn()
    await turn({ settled: claimed.map(settle) })
    const late = (result: SettledAttempt['result']) => turn({ settled: claimed.map((one) => ({ ...settle(one), result })) })
    await late({ kind: 'rejected', status: 500, retryAfterMs: null, ...kept })
    await late({ kind: 'failed', reason: 'body_gone', detail: 'gone', ...kept })
    const found = await reads.findDelivery(claimed[0]?.deliveryId ?? 0)
    expect(found?.delivery).toMatchObject({ state: 'delivered', reason: null, attempts: 1 })
    expect(found?.attempts).toMatchObject([{ status: 200 }, { status: null }, { status: 500 }])
  })

  test('the oldest delivery goes first, even if it waited behind another of its parcel', async () => {
    const { push, pass, turn, settle } = await openTurns(engine)
    for (const minute of [1, 2]) await push({ trackingIds: ['1001'], eventTime: `2026-03-01T10:0${minute}:00.000Z` })
    pass(1000)
    await push({ trackingIds: ['2002'] })
    pass(1000)
    const sequences: number[] = []
    let { claimed } = await turn({ claimsMax: 1 })
    while (claimed.length > 0) {
      sequences.push(...claimed.map(({ sequence }) => sequence))
      ;({ claimed } = await turn({ settled: claimed.map(settle), claimsMax: 1 }))
    }
    expect(sequences).toEqual(sequences.toSorted((one, other) => one - other))
    expect(sequences).toHaveLength(3)
  })

  test('claims are given first to the endpoint that is furthest behind', async () => {
    const { push, pass, turn, settle, writes, now } = await openTurns(engine)
    await addEndpoint(writes, now(), { name: 'slow', concurrency: 1 })
    for (let parcel = 0; parcel < 4; parcel++) {
      await push({ trackingIds: [`${1000 + parcel}`] })
      pass(1)
    }
    const { claimed: first } = await turn({ claimsMax: 1 })
    const behind = first[1]?.endpointId ?? ''
    const { claimed: second } = await turn({
      settled: first.slice(0, 1).map(settle),
      claimsMax: 1,
      inFlight: { [behind]: Array.from({ length: CLAIMS_PER_ATTEMPT }, (_, nth) => (first[1]?.deliveryId ?? 0) + nth) },
    })
    expect([first.length, second.length]).toEqual([2, 1])
    const { claimed: third } = await turn({ settled: [...second, ...first.slice(1)].map(settle), claimsMax: 1 })
    expect(third.map(({ endpointId }) => endpointId === behind)).toEqual([true, false])
  })
})
