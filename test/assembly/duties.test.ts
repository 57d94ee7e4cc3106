import { expect, onTestFinished, test } from 'vitest'
import { beginDuties } from '../../src/assembly/begin-duties.ts'
import { createClosing } from '../../src/core/wiring/closing.ts'
import type { ReplicaChangeListener } from '../../src/server/replicas/membership.ts'
import { createLogBook } from '../support/runner/log-book.ts'

/** Runs the duties of a replica, and lets the test report changes of other replicas. */
function begin() {
  const listeners: ReplicaChangeListener[] = []
  let reviews = 0
  const nothing = () => undefined
  const soon = async () => undefined
  const closing = createClosing()
  onTestFinished(() => closing.closeAll())
  beginDuties({
    operator: { tryDaily: soon },
    replicas: { id: () => 1, holds: () => false, list: async () => [] },
    shared: {
      model: { leave: soon, load: soon },
      clearMoves: soon,
      replicas: { begin: (_duties, listener) => void listeners.push(listener) },
    },
    commitSignal: { subscribe: nothing },
    delivery: {
      wake: nothing,
      review() {
        reviews += 1
      },
      reviewAll: nothing,
      drained: soon,
      lapsed: nothing,
      restore: soon,
      removeUnnamed: soon,
    },
    polling: { taken: nothing, giveUp: soon },
    pushes: { look: soon },
    closing,
    removeAfterMs: 900_000,
    awaitMove: nothing,
    tellFollowers: nothing,
    forgetFeed: nothing,
    log: createLogBook().log,
  })
  return { listener: listeners[0], reviews: () => reviews }
}

test('a change of replicas causes a review, because an endpoint may now have no replica', () => {
  const { listener, reviews } = begin()
  listener?.replicasChanged()
  expect(reviews()).toBe(1)
})
