import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { ClaimedDelivery, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { EndpointSettings } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { WriteSide } from '../../../src/core/flow/write-side.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { addEndpoint, endpointSettings } from '../delivery/stored-endpoint.ts'
import { strictLog } from '../history/observed.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { seededObservations, trackingIdOf, trackingNumberOf } from '../history/seeded-observations.ts'
import { NOON } from '../runner/constants.ts'
import { seeded } from '../runner/seeded.ts'
import { REFUSAL, REFUSED } from './refusal.ts'

const BATCH_MS = 20 * 60_000
const PARCELS = 24
const BATCHES = 14
const BATCH_SIZE = 24

/** Makes up the result of an attempt: most events are accepted, some refused, and some not answered. `gone`: the endpoint answers 410. */
function answered(delivery: ClaimedDelivery, atMs: number, random: () => number, gone: boolean): SettledAttempt {
  const { body: _body, previousSequence: _previous, ...rest } = delivery
  const kind = random()
  const kept = { durationMs: Math.floor(random() * 100), answerStart: kind < 0.6 ? new Uint8Array() : Buffer.from('no such order') }
  const status = gone ? 410 : kind < 0.8 ? 200 : 422
  if (kind > 0.95 && !gone)
    return { ...rest, atMs, random: 0.5, result: { kind: 'failed', reason: 'timeout', detail: 'no answer', ...kept } }
  const result =
    status === 200 ? ({ kind: 'accepted', status, ...kept } as const) : ({ kind: 'rejected', status, retryAfterMs: null, ...kept } as const)
  return { ...rest, atMs, random: 0.5, result }
}

/**
 * Fills a store through the write side, on a simulated clock. No token key and no relay id are created: both are
 * random, and the result must be the same each time.
 */
export async function writeSeededStore(sqlitePath: string, engine?: Engine): Promise<void> {
  let nowMs = NOON
  const clock = { now: () => nowMs, monotonic: () => nowMs - NOON }
  const writes = await openWriteSide(
    { sqlitePath, ...(engine === undefined ? {} : { engine }), record: recordOptions, deliver: deliverOptions },
    clock,
    strictLog,
  )
  const observations = seededObservations(20_260_301, PARCELS)
  const goneId = await addEndpoints(writes, nowMs)
  const dispatch = createDispatching(writes, goneId)
  for (let nth = 0; nth < BATCHES; nth++) {
    const batch = Array.from({ length: BATCH_SIZE }, () => observations.next(nowMs))
    await writes.record(nth % 5 === 4 ? [...batch, observations.join(nth, nth + 1, nowMs)] : batch)
    await dispatch(nowMs)
    nowMs += BATCH_MS
    await happen(writes, nth, nowMs)
    await dispatch(nowMs)
  }
  // The pushes of these entries are still expected when the store is closed.
  await writes.record(Array.from({ length: BATCH_SIZE }, () => observations.next(nowMs)))
  await writes.saveOrder({ identifier: trackingIdOf(4), context: { reference: 'ORDER-1', labels: { shop: 'north' }, note: null }, nowMs })
  await writes.unwatch({ identifier: trackingIdOf(3) })
  await writes.checkpointModel()
  await writes.close()
}

/** Returns the id of the endpoint that answers 410. */
async function addEndpoints(writes: WriteSide, nowMs: number): Promise<string> {
  const billing: EndpointSettings = { ...endpointSettings, name: 'billing', url: 'http://billing.internal/', concurrency: 1 }
  await writes.syncEndpoints([billing], nowMs, 'http://operator.internal/')
  await addEndpoint(writes, nowMs, { name: 'shop', backfill: true })
  await addEndpoint(writes, nowMs, { name: 'mailbox', filters: { ...endpointSettings.filters, distributionType: ['Mailbox'] } })
  return (await addEndpoint(writes, nowMs, { name: 'gone' })).id
}

/** Each call runs two rounds. The second settles what the first claimed. What the second claims is never settled, as after a crash. */
function createDispatching(writes: WriteSide, goneId: string) {
  const random = seeded(7)
  return async (nowMs: number): Promise<void> => {
    const round = { inFlight: {}, allowance: {}, claimsMax: 40, nowMs }
    const { claimed } = await writes.dispatchRound({ ...round, settled: [] })
    const settled = claimed.map((delivery) => answered(delivery, nowMs, random, delivery.endpointId === goneId))
    await writes.dispatchRound({ ...round, settled })
  }
}

async function happen(writes: WriteSide, nth: number, nowMs: number): Promise<void> {
  for (const { parcelId } of await writes.claimDuePolls({ nowMs, limit: 2, leaseMs: BATCH_MS })) {
    await writes.notePollFailure({ parcelId, kind: 'unavailable', atMs: nowMs })
    await writes.noteLanguageAsked({ parcelId, language: 'sv', knownTo: nth, answer: null })
  }
  await writes.settleMissedPushes(nowMs)
  if (nth === 3) await writes.watchMany({ identifiers: [trackingNumberOf(1), trackingNumberOf(90)], nowMs })
  if (nth === 4) await writes.noteNotPollable(trackingIdOf(2))
  if (nth === 8) await writes.reprocess({ inboxId: 3, nowMs })
  if (nth === 9) await tellOperators(writes, nowMs)
  if (nth === 10) await startReplay(writes, nowMs)
  if (nth === 7) await leaveTombstone(writes, nowMs)
  if (nth === 11) await writes.rememberCarrier({ atMs: nowMs, days: [], pausedUntilMs: nowMs, tokenPausedUntilMs: null, refusal: null })
}

async function leaveTombstone(writes: WriteSide, nowMs: number): Promise<void> {
  await writes.useTombstoneKey(new Uint8Array(32))
  await writes.eraseParcels({ identifiers: ['ERASED0001'], nowMs, dryRun: false })
}

async function tellOperators(writes: WriteSide, nowMs: number): Promise<void> {
  await writes.beginTrouble({ subject: 'credentials', event: { event: 'credentials_refused' }, nowMs })
  const by = { kind: 'app', name: 'admin', address: '127.0.0.1' } as const
  await writes.keepRefusal({ ...REFUSAL, atMs: nowMs })
  await writes.saveRefused({ spells: REFUSED, nowMs: NOON })
  await writes.endSession({ session: 'session', untilMs: nowMs, nowMs })
  await writes.recordAction({
    atMs: nowMs,
    by: { ...by, form: { id: 'form', fields: 'fields' } },
    action: 'endpoint.tested',
    target: { kind: 'endpoint', id: '2' },
    detail: {},
  })
}

async function startReplay(writes: WriteSide, nowMs: number): Promise<void> {
  const any = { fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
  const task = { kind: 'replay', selection: { ...any, endpointId: '2', states: ['dead'] }, to: '2', untilMs: nowMs } as const
  await writes.startJob({ task, by: 'admin', nowMs })
  await writes.workOnJobs({ limit: 5, nowMs })
  await writes.prune({ nowMs })
}
