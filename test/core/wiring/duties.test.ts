import { expect, onTestFinished, test } from 'vitest'
import type { Duty } from '../../../src/core/flow/ports.ts'
import { systemClock } from '../../../src/core/runtime/system-clock.ts'
import { createClosing } from '../../../src/core/wiring/closing.ts'
import { createDuties } from '../../../src/core/wiring/create-duties.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const MB = 1024 ** 2

/** Duties of a replica whose roles and room on the disk the test sets. A duty counts its passes. */
function openDuties() {
  const world = { isJanitor: true, freeBytes: 10_000 * MB }
  const closing = createClosing()
  const book = createLogBook()
  onTestFinished(() => closing.closeAll())
  const disk = { state: () => ({ freeBytes: world.freeBytes, diskBytes: 0, storeBytes: 0, logBytes: 0 }) }
  const parts = { log: book.log, clock: systemClock, closing, disk, replicas: { holds: () => world.isJanitor } }
  const duties = createDuties({ limits: { freeSpaceBytesMin: 100 * MB } }, parts)
  const add = (duty: Partial<Duty>) => {
    let passes = 0
    const pass: Duty['pass'] = async () => {
      passes += 1
      return (await duty.pass?.()) ?? 'idle'
    }
    duties.add({ role: 'janitor', afterOrders: true, failure: 'it failed', ...duty, pass })
    return () => passes
  }
  const woken = async () => {
    duties.wake()
    await duties.rests('janitor')
  }
  return { world, duties, add, woken, closing, book }
}

test('a duty works after an order until a pass finds nothing', async () => {
  const { add, woken } = openDuties()
  let left = 3
  const passes = add({
    async pass() {
      left -= 1
      return left > 0 ? 'busy' : 'idle'
    },
  })
  await woken()
  expect(passes()).toBe(3)
})

test('a duty of a role rests while another replica holds it', async () => {
  const { world, add, woken } = openDuties()
  const [passes, everywhere] = [add({}), add({ role: null })]
  world.isJanitor = false
  await woken()
  await expect.poll(everywhere).toBe(1)
  expect(passes()).toBe(0)
})

test('only a duty that needs room waits for a full disk', async () => {
  const { world, add, woken } = openDuties()
  const [needing, other] = [add({ needsRoom: true }), add({})]
  world.freeBytes = 0
  await woken()
  expect([needing(), other()]).toEqual([0, 1])
  world.freeBytes = 10_000 * MB
  await woken()
  expect([needing(), other()]).toEqual([1, 2])
})

test('a duty without orders looks by itself', async () => {
  const { add, woken } = openDuties()
  const passes = add({ afterOrders: false, everyMs: 5 })
  await woken()
  await expect.poll(passes).toBeGreaterThan(1)
})

test('a pass that fails is logged and repeated', { timeout: 60_000 }, async () => {
  const { add, woken, book } = openDuties()
  let isBroken = true
  const passes = add({
    async pass() {
      if (isBroken) throw new Error('no store')
      return 'idle'
    },
  })
  await woken()
  isBroken = false
  await expect.poll(passes, { timeout: 50_000 }).toBe(2)
  expect(book.lines.map(({ message }) => message)).toContain('it failed')
})

test('no pass begins after the end', async () => {
  const { add, duties, closing } = openDuties()
  const passes = add({})
  await closing.closeAll()
  duties.wake()
  await duties.rests('janitor')
  expect(passes()).toBe(0)
})
