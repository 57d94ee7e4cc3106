import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../../faults/world.ts'

const NUMBERS = 10_000

test('P11: an app that tries numbers at random is stopped, and the carrier gets few calls', async () => {
  const world = await startWorld({ upstream: { timeout: '10s', ratePerSecond: 20 }, limits: { unknownPerMinute: 60 } })
  onTestFinished(() => world.stop())
  const startedAt = performance.now()
  const statuses: number[] = []
  const numbers = Array.from({ length: NUMBERS }, (_, at) => `EN${String((at * 7919) % 1_000_003).padStart(9, '0')}SE`)
  const next = numbers.values()
  const askOn = async () => {
    for (const number of next) {
      const answer = await world.get(`/v1/status/${number}/all`)
      statuses.push(answer.status)
      if (answer.status === 429) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: 32 }, askOn))
  const seconds = (performance.now() - startedAt) / 1000
  expect(statuses).toHaveLength(NUMBERS)
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(NUMBERS - 500)
  const calls = world.carrier.asked.urls.length
  expect(calls).toBeLessThanOrEqual(60 * Math.ceil(seconds / 60 + 1))
  expect(calls).toBeLessThanOrEqual(20 * seconds + 20)
})
