import { join } from 'node:path'
import { expect, test } from 'vitest'
import { randomFor } from '../../src/trial/sandbox/parcel-plan.ts'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { textOf } from '../support/relay/caught-up.ts'
import { logIn, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { damageOf, storedBodies } from '../support/store/stored-rows.ts'

const CYCLES = byForm(1, 5, 25)
const STORES = Array.from({ length: byForm(1, 1, 40) }, (_, at) => at + 1)
const AT_ONCE = 24
const PARCELS = 10

test.each(STORES)(`S1, F1: kill -9 under load loses no answered push, ${CYCLES} times on one store (%i)`, async (store) => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER, { log: { level: 'info' } })
  const random = randomFor(store, 'when to kill')
  const pushes = distinctPushes(PARCELS)
  const acknowledged: string[] = []
  let token = ''
  for (let cycle = 0; cycle <= CYCLES; cycle++) {
    await using relay = await runRelay(config)
    // The key that signs tokens is stored, so the token of one login stays valid over every crash.
    if (token === '') token = await logIn(relay.internalUrl)
    const asker = { internalUrl: relay.internalUrl, token }
    const histories = await Promise.all(pushes.parcels(acknowledged).map((id) => textOf(asker, id, 'all', 'en')))
    expect(missing(acknowledged.map(pushes.entryOf), histories.join('\n')), `in the histories after crash ${cycle}`).toEqual([])
    const place = join(folder, 'relay.db')
    expect(await damageOf(place)).toBeNull()
    const bodies = await storedBodies(place)
    expect(
      acknowledged.filter((body) => !bodies.has(body)),
      `in the inbox after crash ${cycle}`,
    ).toEqual([])
    if (cycle === CYCLES) break

    const load = startLoad(relay.publicUrl, AT_ONCE, pushes.next, { restMs: 0 })
    await load.untilAnswered(1 + Math.floor(random() * 150))
    const inFlight = load.inFlight()
    relay.process.kill('SIGKILL')
    const answers = await load.stop()
    expect(await relay.ended).toEqual({ code: null, signal: 'SIGKILL' })
    const accepted = answers.filter(({ status }) => status === 200)
    expect(inFlight).toBeGreaterThanOrEqual(16)
    expect(accepted.length, `acknowledged in cycle ${cycle}`).toBeGreaterThan(0)
    expect(answers.filter(({ status }) => status !== 200 && status !== null)).toEqual([])
    acknowledged.push(...accepted.map(({ body }) => body))
  }
  expect(acknowledged.length).toBeGreaterThan(CYCLES * 20)
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
})

function missing(wanted: readonly string[], text: string): readonly string[] {
  return wanted.filter((one) => !text.includes(one))
}
