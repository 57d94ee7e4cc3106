import { describe, expect, test } from 'vitest'
import type { EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { replayManyAt } from '../../support/delivery/replay-many-at.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { OPERATOR } from '../../support/relay/operator.ts'
import { NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

/** Opens replays over a store in which `selected` deliveries can be replayed, and each batch queues a hundred. */
async function openReplays(engine: Engine, selected: number) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON)
  const endpoints: readonly EndpointState[] = await store.reads.listEndpoints()
  const stopping = new AbortController()
  const leaving = new AbortController()
  let stretches = 0
  let afterStretch = (): void => {}
  const replayMany = replayManyAt({
    write: {
      ...store.writes,
      replayDeliveries: async () => {
        stretches += 1
        afterStretch()
        return { count: 100, next: { at: stretches, id: stretches } }
      },
    },
    reads: {
      ...store.reads,
      listEndpoints: async () => endpoints,
      countReplayable: async ({ limit }) => ({ count: Math.min(limit, selected), parcels: 1, oldestAtMs: 1 }),
    },
    clock: { now: store.now, monotonic: store.now },
    stopping: stopping.signal,
  })
  return {
    replay: (body: object) => replayMany(id, body, { by: OPERATOR, left: leaving.signal }),
    stretches: () => stretches,
    /** Makes the caller leave, or the relay stop, after this many batches. */
    afterStretches(count: number, who: 'asker' | 'relay') {
      afterStretch = () => {
        if (stretches === count) (who === 'asker' ? leaving : stopping).abort()
      }
    },
  }
}

describe.each(engines)('replays of many deliveries on $name', (engine) => {
  test('a replay queues no further batch after its caller has left', async () => {
    const { replay, stretches, afterStretches } = await openReplays(engine, 10_000)
    afterStretches(3, 'asker')
    expect(await replay({ since: 0 })).toEqual({ kind: 'replayed', count: 300 })
    expect(stretches()).toBe(3)
  })

  test('a replay queues no further batch when the relay stops, and says how many it has queued', async () => {
    const { replay, stretches, afterStretches } = await openReplays(engine, 10_000)
    afterStretches(2, 'relay')
    await expect(replay({ since: 0 })).rejects.toMatchObject({
      code: 'storage_unavailable',
      message: expect.stringContaining('200 deliveries'),
    })
    expect(stretches()).toBe(2)
  })

  test('a replay of more than 10,000 deliveries becomes a job, without an exact count', async () => {
    const { replay, stretches } = await openReplays(engine, 1_400_000)
    expect(await replay({ since: 0, dryRun: true })).toMatchObject({ kind: 'counted', count: 10_001, parcels: 1, more: true })
    expect(await replay({ since: 0 })).toMatchObject({ kind: 'job', job: { state: 'waiting', by: 'admin', task: { kind: 'replay' } } })
    expect(stretches()).toBe(0)
  })
})
