import { expect, test } from 'vitest'
import type { Probe } from '../../../src/upkeep/check/check.rules.ts'
import { ok } from '../../../src/upkeep/check/check.rules.ts'
import { createCheck } from '../../../src/upkeep/check/running-check.ts'

function openWorld(probes: readonly Probe[]) {
  let nowMs = 0
  const late: (() => void)[] = []
  const check = createCheck({
    probes: async () => probes,
    pause: () => new Promise<void>((resolve) => late.push(resolve)),
    monotonic: () => nowMs,
  })
  return {
    check,
    expire() {
      for (const end of late) end()
    },
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

test('a check that rejects fails with its message, and the other checks still count', async () => {
  const { check } = openWorld([
    { name: 'store', subject: null, look: () => Promise.reject(new Error('store: /x is gone')) },
    { name: 'config', subject: null, look: async () => ok('fine') },
    { name: 'credentials', subject: null, look: async () => [{ name: 'clock', subject: null, ...ok('agrees') }] },
  ])
  expect(await check()).toEqual([
    { name: 'config', subject: null, state: 'ok', message: 'fine' },
    { name: 'store', subject: null, state: 'failed', message: 'store: /x is gone' },
    { name: 'clock', subject: null, state: 'ok', message: 'agrees' },
  ])
})

test('a check that never ends fails after its time limit', async () => {
  const { check, expire } = openWorld([{ name: 'endpoint', subject: 'shop', look: () => new Promise(() => undefined) }])
  const checked = check()
  await new Promise<void>((resolve) => setImmediate(resolve))
  expire()
  expect(await checked).toEqual([{ name: 'endpoint', subject: 'shop', state: 'failed', message: 'It gave no result within 30 s.' }])
})

test('all callers during a check and for five seconds after it get the same result', async () => {
  let looks = 0
  const gate = Promise.withResolvers<void>()
  const { check, pass } = openWorld([
    {
      name: 'credentials',
      subject: null,
      look: async () => {
        looks++
        await gate.promise
        return ok(String(looks))
      },
    },
  ])
  const both = [check(), check()]
  gate.resolve()
  const [first, second] = await Promise.all(both)
  pass(4999)
  expect([first, second, await check(), looks]).toEqual([first, first, first, 1])
  pass(1)
  await check()
  expect(looks).toBe(2)
})

test('at most sixteen checks run at the same time', async () => {
  let [underWay, most] = [0, 0]
  const look = async () => {
    most = Math.max(most, ++underWay)
    await new Promise<void>((resolve) => setImmediate(resolve))
    underWay--
    return ok('')
  }
  const { check } = openWorld(Array.from({ length: 100 }, (_, nth) => ({ name: 'endpoint', subject: String(nth), look })))
  expect([(await check()).length, most]).toEqual([100, 16])
})

test('6.4: checks in a loop by fifty callers cost less than a tenth of 50,000 calls a day', async () => {
  let looks = 0
  const look = async () => ok(String(++looks))
  const { check, pass } = openWorld([{ name: 'credentials', subject: null, look }])
  const loopFor = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 5000) {
      await Promise.all(Array.from({ length: 50 }, check))
      pass(5000)
    }
  }
  await loopFor(45_000)
  expect(looks).toBe(9)
  await loopFor(24 * 3_600_000)
  // A check is two calls of the carrier.
  expect(looks * 2).toBeLessThan(5000)
  pass(600_000)
  const before = looks
  await loopFor(10_000)
  expect(looks).toBe(before + 2)
})
