import { onTestFinished } from 'vitest'
import { createWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { PushHealth } from '../../../src/core/domain/polling/push-health.ts'
import { createCarrierModelKeeper } from '../../../src/core/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../../src/core/flow/polling/model-checkpoint.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { NOON } from '../runner/constants.ts'
import { openBareStore } from './engines.ts'

/** Opens the write side on a new store at noon, with healthy pushes. The test sets the clock and the health. */
export async function openWithPushHealth(engine: Engine) {
  let health: PushHealth = 'healthy'
  let nowMs = NOON
  const clock = { now: () => nowMs, monotonic: () => nowMs - NOON }
  const keeper = createCarrierModelKeeper(clock)
  const model = { ...keeper, current: () => ({ ...keeper.current(), pushHealth: health }) }
  const errors: object[] = []
  const log = { error: (fields: object) => void errors.push(fields) }
  const { store, reads } = await openBareStore(engine)
  const checkpoint = await openModelCheckpoint({ store, clock, log })
  const writes = createWriteSide({ store, clock, log, checkpoint, model }, { record: recordOptions, deliver: deliverOptions })
  onTestFinished(async () => {
    await writes.close()
    if (errors.length > 0) throw new Error(JSON.stringify(errors))
  })
  return {
    writes,
    now: () => nowMs,
    pass: (ms: number) => {
      nowMs += ms
      return nowMs
    },
    become: (now: PushHealth) => {
      health = now
    },
    async stateOf(identifier: string) {
      const found = await reads.inspectParcel(identifier)
      if (found === null) throw new Error(`no parcel has the identifier ${identifier}`)
      return found.state
    },
  }
}
