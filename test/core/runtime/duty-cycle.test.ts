import { expect, test } from 'vitest'
import { createDutyCycle } from '../../../src/core/runtime/schedule.ts'

/** Creates work that takes the given time on a simulated clock. */
function openInTurn() {
  let nowMs = 0
  const did: string[] = []
  const inTurn = createDutyCycle(
    () => nowMs,
    async (ms) => {
      did.push(`rest ${ms}`)
      nowMs += ms
    },
  )
  const take = (name: string, ms: number) =>
    inTurn(async () => {
      did.push(name)
      await Promise.resolve()
      nowMs += ms
      return name
    })
  return { inTurn, take, did }
}

test('work that several callers request is done in turn, with pauses as long as the work', async () => {
  const { take, did } = openInTurn()
  expect(await Promise.all([take('one', 5), take('other', 20), take('third', 5000)])).toEqual(['one', 'other', 'third'])
  await take('last', 1)
  expect(did).toEqual(['one', 'rest 5', 'other', 'rest 20', 'third', 'rest 1000', 'last', 'rest 1'])
})

test('failed work is reported to its caller, and the next work runs', async () => {
  const { inTurn, take } = openInTurn()
  const failed = inTurn(() => Promise.reject(new Error('the disk is full')))
  const next = take('next', 1)
  await expect(failed).rejects.toThrow('the disk is full')
  expect(await next).toBe('next')
})
