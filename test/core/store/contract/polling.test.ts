import { describe, expect, test } from 'vitest'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const identifiers = Array.from({ length: 10 }, (_, at) => `AB12345678${at}SE`)

describe.each(engines)('the schedule of polls on $name', (engine) => {
  async function openWatched() {
    const store = await openStore(NOON, engine)
    await store.writes.watchMany({ identifiers, nowMs: NOON })
    const claim = (limit: number, nowMs = NOON + DAY_MS) => store.writes.claimDuePolls({ nowMs, limit, leaseMs: 60_000 })
    return { ...store, claim }
  }

  test('leases a due parcel to only one of several simultaneous claims', async () => {
    const { claim } = await openWatched()
    const claims = await Promise.all([claim(4), claim(4), claim(4), claim(4)])
    const parcelIds = claims.flatMap((polls) => polls.map(({ parcelId }) => parcelId))
    expect(parcelIds).toHaveLength(10)
    expect(new Set(parcelIds).size).toBe(10)
  })

  test('makes a leased parcel due again when its lease expires, and not before', async () => {
    const { claim } = await openWatched()
    expect(await claim(100)).toHaveLength(10)
    expect(await claim(100, NOON + DAY_MS + 59_999)).toEqual([])
    expect(await claim(100, NOON + DAY_MS + 60_001)).toHaveLength(10)
  })

  test('a parcel whose answer is recorded while others are claimed is not claimed again', async () => {
    const { claim, poll, writes, reads, path, pass } = await openWatched()
    pass(DAY_MS)
    for (let race = 0; race < casesOf(20, 4); race++) {
      const nowMs = pass(1000)
      const claimed = await claim(10, nowMs)
      expect(claimed).toHaveLength(10)
      const underWay = claimed.map(({ parcelId }) => parcelId)
      const again = claimed.map(async ({ identifiers: [asked = ''] }) => {
        const recorded = poll({ asked, trackingIds: [], askedAtMs: nowMs })
        const meanwhile = writes.claimDuePolls({ nowMs, limit: 10, leaseMs: 60_000, underWay })
        await recorded
        return await meanwhile
      })
      expect((await Promise.all(again)).flat()).toEqual([])
      expect((await reads.counts(nowMs)).overdue).toBe(0)
      // Make all parcels due again.
      await changeStoredRows(path, 'update parcel set next_poll_at_ms = ?', NOON)
    }
  })

  test('finds the parcel of an identifier, due or not, and none for an unknown identifier', async () => {
    const { writes } = await openWatched()
    const claimed = await writes.claimPoll({ identifier: identifiers[3] ?? '', nowMs: NOON, leaseMs: 1000 })
    expect(claimed?.identifiers).toEqual([identifiers[3]])
    expect(await writes.claimPoll({ identifier: 'ZZ999999999SE', nowMs: NOON, leaseMs: 1000 })).toBeNull()
  })

  test('watches an identifier once, and stops when asked, until it is watched again', async () => {
    const { writes, reads } = await openWatched()
    const [again] = await writes.watchMany({ identifiers: identifiers.slice(0, 1), nowMs: NOON })
    expect(again?.created).toBe(false)
    expect((await reads.counts(NOON)).watched).toBe(10)
    expect(await writes.unwatch({ identifier: identifiers[0] ?? '' })).toEqual({ parcelId: again?.parcelId })
    expect((await reads.counts(NOON)).watched).toBe(9)
    await writes.watch({ identifier: identifiers[0] ?? '', nowMs: NOON })
    expect((await reads.counts(NOON)).watched).toBe(10)
    expect(await writes.unwatch({ identifier: 'ZZ999999999SE' })).toBeNull()
  })

  test('creates one parcel when two callers watch an identifier at the same time', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const watched = await Promise.all([1, 2].map(() => writes.watch({ identifier: 'AB123456789SE', nowMs: NOON })))
    expect(watched.filter((one) => one?.created)).toHaveLength(1)
    expect((await reads.counts(NOON)).parcels).toBe(1)
  })

  test('returns the facts about the carrier as they were last saved', async () => {
    const { writes } = await openStore(NOON, engine)
    expect(await writes.carrierMemory()).toBeNull()
    const memory = { atMs: NOON, days: [{ day: 20_513, calls: 7 }], pausedUntilMs: null, tokenPausedUntilMs: NOON + 1, refusal: null }
    await writes.rememberCarrier({ ...memory, days: [{ day: 20_513, calls: 6 }] })
    await writes.rememberCarrier(memory)
    expect(await writes.carrierMemory()).toEqual(memory)
  })
})
