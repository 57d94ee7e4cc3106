import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { seeded } from '../../../support/runner/seeded.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const ID = '1001'

/**
 * Simulates one parcel that the carrier pushes, and whose polls it answers with 404. Returns the breaches of three rules. After a push or a watch,
 * a poll is planned. A 404 ends the plan until the next push or watch. Within a day after a 404, a poll is made only if a push has come.
 */
async function live(engine: (typeof engines)[number], seed: number, steps: number): Promise<readonly string[]> {
  const random = seeded(seed)
  const { push, writes, reads, pass, now, parcelIdOf } = await openStore(NOON, engine)
  const wrong: string[] = []
  let pushes = 0
  const pushNext = () => push({ trackingIds: [ID], eventTime: new Date(NOON + ++pushes * 1000).toISOString() })
  await pushNext()
  const parcelId = await parcelIdOf(ID)
  let refusedAtMs = Number.NEGATIVE_INFINITY
  let isHeard = true
  let isWanted = true
  const plannedMs = async () => (await reads.inspectParcel(ID))?.state.nextPollAtMs ?? null
  const poll = async () => {
    const claimed = await writes.claimDuePolls({ nowMs: now(), limit: 1, leaseMs: 1 })
    if (claimed.length === 0) return
    if (!isHeard && now() < refusedAtMs + DAY_MS) wrong.push(`asked ${(now() - refusedAtMs) / HOUR_MS} h after a 404`)
    if (claimed[0]?.identifiers.join() !== ID) wrong.push('polled another identifier')
    pass(1)
    await writes.noteNotPollable(ID)
    await writes.notePollFailure({ parcelId, kind: 'unknown', atMs: now() })
    refusedAtMs = now()
    isHeard = false
    isWanted = false
    pass(1)
  }
  for (let step = 0; step < steps; step++) {
    const what = random()
    if (what < 0.2) {
      await pushNext()
      isHeard = true
      isWanted = true
    } else if (what < 0.4) {
      await writes.watch({ identifier: ID, nowMs: now() })
      isWanted = true
    } else if (what < 0.7) pass(Math.floor(random() * 12 * HOUR_MS))
    else if (what < 0.8) pass(Math.max(0, ((await plannedMs()) ?? 0) - now()))
    else await poll()
    const atMs = await plannedMs()
    if ((atMs !== null) !== isWanted) wrong.push(`step ${step}: ${isWanted ? 'nothing is planned' : 'planned although nobody asked'}`)
    if (atMs !== null && atMs > now() + DAY_MS + 3 * HOUR_MS) wrong.push(`step ${step}: put off for ${(atMs - now()) / HOUR_MS} h`)
    pass(MINUTE_MS)
  }
  return wrong
}

describe.each(engines)('a parcel that the carrier does not know, on $name', (engine) => {
  test('6.1, 6.3: is polled after a push or a watch, and otherwise not for a day', async () => {
    for (let seed = 1; seed <= 5; seed++) expect({ seed, wrong: await live(engine, seed, 60) }).toEqual({ seed, wrong: [] })
  })
})
