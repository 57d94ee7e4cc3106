import { afterEach, expect, test } from 'vitest'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { openStore } from '../../../support/store/write-side.ts'
import { closeOpened, connect, openCarrier } from '../../carrier/carrier-double.ts'

afterEach(closeOpened)

/** Starts one relay after another on a store file, with a clock that the test sets. */
async function openRuns() {
  const { writes, now, setClock } = await openStore(NOON)
  const { url } = await openCarrier()
  const start = async () => {
    const { fetchAll, carrier } = connect(url, {
      clock: { now, monotonic: () => performance.now() },
      memory: await writes.carrierMemory(),
      remember: (memory) => writes.rememberCarrier(memory),
    })
    const askedAtMs = async () => {
      const answer = await fetchAll()
      return answer.kind === 'found' ? answer.observation.askedAtMs : expect.fail(answer.kind)
    }
    return { keep: carrier.keep, askedAtMs }
  }
  return { start, setClock }
}

test('P13: requests are dated in their order, even after a kill and with a clock put back', async () => {
  const { start, setClock } = await openRuns()
  const killed = await start()
  await killed.askedAtMs()
  // The first request saved the call of this one in advance (see `own-budget`), so this one saves nothing.
  setClock(NOON + 40_000)
  const last = await killed.askedAtMs()
  setClock(NOON - HOUR_MS)
  const next = await start()
  const first = await next.askedAtMs()
  expect(first).toBeGreaterThan(last)
  expect(await next.askedAtMs()).toBe(first + 1)
})

test('P13: answers from a run whose clock was ahead count as older than the next run’s answers', async () => {
  const { start, setClock } = await openRuns()
  const run = await start()
  await run.askedAtMs()
  setClock(NOON - HOUR_MS)
  const last = await run.askedAtMs()
  await run.keep()
  setClock(NOON - HOUR_MS / 2)
  const next = await start()
  expect(await next.askedAtMs()).toBeGreaterThan(last)
})
