import { describe, expect, test } from 'vitest'
import type { IncomingPoll, RecordOutcome } from '../../../../src/core/domain/history/recording.ts'
import type { CarrierAnswer } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { createFetchKnown, createFetchOnce } from '../../../../src/core/flow/history/fetch-on-miss.ts'
import { createRefresh } from '../../../../src/core/flow/polling/refresh.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const NUMBER = 'AB123456789SE'
const known = { eventTimestamp: '2026-03-01T10:00:00Z' }
const later = { eventTimestamp: '2026-03-01T11:00:00Z' }
const pushedLater = { eventTime: '2026-03-01T11:00:00.000Z', texts: { en: 'Arrived' } }

/** Stores a parcel that is known in English. `ask` asks the carrier for Swedish, and `answer` gives the carrier's answer. */
async function startAsking(engine: Engine, answer: () => Promise<CarrierAnswer>) {
  const store = await openStore(NOON, engine)
  const { reads, writes: write, pass } = store
  await store.poll({ asked: NUMBER, statuses: [known] })
  const recorder = {
    submit: async (incoming: IncomingPoll): Promise<RecordOutcome> => (await store.record(incoming)).outcomes[0] ?? { kind: 'duplicate' },
  }
  const carrier = { fetchAll: answer }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const clock = { now: () => pass(1), monotonic: () => 0 }
  const questions = createFetchKnown(
    { notFound: new Map(), pauses: new Map(), rests: new Map(), admitUnknown: async () => null, erasedAtMs: async () => null, log, clock },
    { languages: ['en', 'sv'], notFoundForMs: 1, fetchUnknown: true },
    createFetchOnce({ carrier, recorder, reads, write }, { notFoundForMs: 1 }),
  )
  const refresh = createRefresh({ carrier, recorder, reads, write, meter: { pollEnded() {} }, clock }, { languages: ['en', 'sv'] })
  const view = async () => {
    const found = await reads.findParcel('1001')
    if (found === null) throw new Error('no parcel')
    return found
  }
  return {
    ...store,
    ask: async () =>
      await questions(
        await view(),
        { app: 'shop', identifier: NUMBER, language: 'sv', kind: 'all' },
        { language: 'sv', isMissing: true, isLacking: () => true },
      ),
    refresh: async () => refresh.poll({ parcelId: (await view()).parcelId, identifiers: [NUMBER] }),
    languagesAsked: async () => (await view()).languagesAsked,
  }
}

const found = (language: string, statuses: readonly object[]): CarrierAnswer => ({
  kind: 'found',
  observation: aPoll({ asked: NUMBER, language, askedAtMs: NOON + 5, statuses: statuses.map((one) => ({ ...one })) }),
})

describe.each(engines)('languages asked for on $name', (engine) => {
  test('4.2: an entry pushed while a language is fetched still lacks that language', async () => {
    let during = async (): Promise<unknown> => undefined
    const { ask, push, languagesAsked } = await startAsking(engine, async () => {
      await during()
      return found('sv', [known])
    })
    during = () => push(pushedLater)
    await ask()
    expect(await languagesAsked()).toEqual([])
    during = async () => undefined
    await ask()
    expect(await languagesAsked()).toEqual(['sv'])
  })

  test('4.2: an entry pushed during a scheduled poll lacks the language until the next poll', async () => {
    const languages = ['en', 'sv', 'en', 'sv']
    let during = async (): Promise<unknown> => undefined
    const { refresh, push, languagesAsked } = await startAsking(engine, async () => {
      const language = languages.shift() ?? ''
      if (language === 'sv') await during()
      return found(language, [known])
    })
    during = () => push(pushedLater)
    await refresh()
    expect(await languagesAsked()).toEqual([])
    during = async () => undefined
    await refresh()
    expect(await languagesAsked()).toEqual(['sv'])
    expect(languages).toEqual([])
  })

  test('4.2: an entry that the answer itself brings is not asked about again', async () => {
    const { ask, languagesAsked } = await startAsking(engine, async () => found('en', [later, known]))
    await ask()
    expect(await languagesAsked()).toEqual(['sv'])
  })

  test('4.2: an entry that is no longer listed is not fetched again and again', async () => {
    const { ask, languagesAsked } = await startAsking(engine, async () => found('sv', []))
    await ask()
    expect(await languagesAsked()).toEqual(['sv'])
  })
})
