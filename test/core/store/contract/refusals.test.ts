import { describe, expect, test } from 'vitest'
import type { Refusal } from '../../../../src/core/domain/ingest/refused-spells.ts'
import { listRefusals } from '../../../../src/upkeep/refusals/refusals.rows.ts'
import { REFUSALS_KEPT } from '../../../../src/upkeep/refusals/refusals.rules.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { REFUSAL } from '../../../support/store/refusal.ts'
import { openStore } from '../../../support/store/write-side.ts'

describe.each(engines)('refusals on $name', (engine) => {
  test('a refusal is stored with its explanation, with or without a body and a key', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const bare: Refusal = { ...REFUSAL, verdict: 'unexplained', key: null, causes: [], isCutShort: true, headers: {}, body: null }
    await writes.keepRefusal(REFUSAL)
    await writes.keepRefusal(bare)
    const [last, first] = await listRefusals(reads.session, { before: null, limit: 10 })
    expect([first, last]).toEqual([
      { ...REFUSAL, refusalId: expect.any(Number) },
      { ...bare, refusalId: expect.any(Number) },
    ])
    expect(await listRefusals(reads.session, { before: last?.refusalId ?? 0, limit: 10 })).toEqual([first])
  })

  test('only the latest refusals are kept', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const more = 20
    await Promise.all(Array.from({ length: REFUSALS_KEPT }, () => writes.keepRefusal(REFUSAL)))
    for (let nth = 1; nth <= more; nth++) await writes.keepRefusal({ ...REFUSAL, atMs: NOON + nth })
    const kept = await listRefusals(reads.session, { before: null, limit: 1000 })
    const [newest, oldest] = [kept.slice(0, more), kept.slice(more)].map((part) => part.map(({ atMs }) => atMs - NOON))
    expect(newest).toEqual(Array.from({ length: more }, (_, nth) => more - nth))
    expect(oldest).toEqual(Array.from({ length: REFUSALS_KEPT - more }, () => 0))
  })
})
