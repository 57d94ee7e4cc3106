import { describe, expect, test } from 'vitest'
import type { CarrierMemory } from '../../../../src/core/domain/polling/call-budget.ts'
import { createCarrierMemory } from '../../../../src/core/flow/polling/carrier-memory.tx.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import { engines, openBareStore } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const AT_MS = Date.UTC(2026, 2, 1, 8)

/** Stores this text as the memory of the carrier, and reads it. */
async function read(engine: Engine, text: string): Promise<CarrierMemory | null> {
  const { store } = await openBareStore(engine)
  await store.transaction((tx) => saveSetting(tx, 'carrier-memory', new TextEncoder().encode(text)))
  return await createCarrierMemory(store).carrierMemory()
}

const memory: CarrierMemory = {
  atMs: AT_MS,
  askedAtMs: AT_MS + 1,
  days: [{ day: 20_513, calls: 41 }],
  pausedUntilMs: AT_MS + 60_000,
  tokenPausedUntilMs: null,
  refusal: { tries: 2, untilMs: AT_MS + 900_000, mark: { salt: 'a', digest: 'b' } },
}

describe.each(engines)('the memory of the carrier on $name', (engine) => {
  test('the facts about the carrier are read back as they were saved', async () => {
    const { writes } = await openStore(AT_MS, engine)
    expect(await writes.carrierMemory()).toBeNull()
    await writes.rememberCarrier(memory)
    expect(await writes.carrierMemory()).toEqual(memory)
  })

  test.each(['{}', '7', '{"atMs":1,"days":[{"day":1}],"pausedUntilMs":null,"tokenPausedUntilMs":null,"refusal":null}'])(
    'reading a damaged memory rejects: %s',
    async (text) => await expect(read(engine, text)).rejects.toThrow('damaged'),
  )
})
