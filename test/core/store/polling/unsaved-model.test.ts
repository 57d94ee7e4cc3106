import { expect, test } from 'vitest'
import { StorageFailure } from '../../../../src/core/domain/errors.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../../../src/core/flow/polling/model-checkpoint.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines, openBareStore } from '../../../support/store/engines.ts'

test.each(engines)('what was learnt and cannot be saved is an error while the relay runs, and none at its stop ($name)', async (engine) => {
  const { store } = await openBareStore(engine)
  let ms = 0
  const clock = { now: () => NOON + ms, monotonic: () => ms }
  const errorsOf = async (all: boolean) => {
    const errors: string[] = []
    const log = { error: (_: object, message: string) => void errors.push(message) }
    let isFull = false
    const full: typeof store.transaction = (...given) =>
      isFull ? Promise.reject(new StorageFailure('the disk is full')) : store.transaction(...given)
    const checkpoint = await openModelCheckpoint({ store: { ...store, transaction: full }, clock, log })
    const keeper = createCarrierModelKeeper(clock, checkpoint.from)
    ms += HOUR_MS
    keeper.pushed(clock.now(), 3)
    isFull = true
    await checkpoint.keep(keeper.learnt(), { all })
    return errors
  }
  expect(await errorsOf(false)).toEqual(['what was learnt about the carrier cannot be saved'])
  expect(await errorsOf(true)).toEqual([])
})
