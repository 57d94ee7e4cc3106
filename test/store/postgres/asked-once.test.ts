import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { IncomingPoll, RecordOutcome } from '../../../src/domain/history/recording.ts'
import type { CarrierAnswer } from '../../../src/domain/polling/carrier-answer.ts'
import { createServe } from '../../../src/flow/history/serve.ts'
import { createSharedFlight } from '../../../src/flow/shared-flight.ts'
import { createAnswerCache } from '../../../src/runtime/answer-cache.ts'
import { createMemory } from '../../../src/runtime/memory.ts'
import { createChangeTable } from '../../../src/runtime/threads/change-table.ts'
import { openSharedCarrier } from '../../../src/store/postgres/polling/shared-carrier.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { aPoll } from '../../support/builders.ts'
import { newPlace } from '../../support/engines.ts'
import { openStore } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const NUMBER = 'AB123456789SE'
const found = (language: string): CarrierAnswer => ({
  kind: 'found',
  observation: aPoll({ asked: NUMBER, language, askedAtMs: NOON + 5 }),
})
const notFound: CarrierAnswer = { kind: 'not_found' }

interface Options {
  readonly answer: (language: string) => CarrierAnswer
  readonly isKnown: boolean
  readonly notFoundForMs?: number
}

/** Two replicas that answer apps from one database, and the calls to their carrier. */
async function openTwo({ answer, isKnown, notFoundForMs = 300_000 }: Options) {
  const place = await newPlace(postgres)
  const calls: string[] = []
  const gates = {
    call: Promise.resolve(),
    called: Promise.withResolvers<void>(),
    note: Promise.resolve(),
    noting: Promise.withResolvers<void>(),
  }
  const open = async () => {
    const store = await openStore(NOON, postgres, place)
    const shared = openSharedCarrier(place)
    onTestFinished(() => shared.close())
    const gate = { read: Promise.resolve() }
    const submit = async (incoming: IncomingPoll): Promise<RecordOutcome> =>
      (await store.record(incoming)).outcomes[0] ?? { kind: 'duplicate' }
    let waited = Promise.withResolvers<void>()
    const serve = createServe(
      {
        carrier: {
          async fetchAll({ language }) {
            calls.push(language)
            gates.called.resolve()
            await gates.call
            return answer(language)
          },
        },
        recorder: { submit },
        reads: {
          async findParcel(identifier) {
            const view = await store.reads.findParcel(identifier)
            const { read } = gate
            gate.read = Promise.resolve()
            await read
            return view
          },
        },
        write: {
          ...store.writes,
          async noteLanguageAsked(asked) {
            gates.noting.resolve()
            await gates.note
            await store.writes.noteLanguageAsked(asked)
          },
        },
        together: createSharedFlight({
          flights: shared.flights,
          pause(ms) {
            waited.resolve()
            return pause(ms / 10)
          },
        }),
        cache: createAnswerCache({ bytesMax: 0, changes: createChangeTable() }),
        meter: { served() {} },
        notFound: createMemory<number>({ entriesMax: 10 }),
        pauses: createMemory({ entriesMax: 10 }),
        rests: createMemory({ entriesMax: 10 }),
        admitUnknown: async () => null,
        log: silent,
        clock: { now: store.now, monotonic: () => performance.now() },
      },
      { languages: ['en', 'sv'], notFoundForMs, fetchUnknown: true, fetchMissingLanguage: true, refreshOlderThanMs: null },
    )
    const ask = () =>
      serve.ask({ app: 'shop', identifier: NUMBER, language: 'sv', kind: 'all' }).then(
        () => 'answered',
        (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
      )
    const waitsAnew = () => {
      waited = Promise.withResolvers()
      return waited.promise
    }
    return { ...store, ask, gate, waited: waited.promise, waitsAnew }
  }
  const [one, other] = [await open(), await open()]
  if (isKnown) await one.poll({ asked: NUMBER, language: 'en' })
  return { one, other, calls, gates }
}

const CASES = [
  ['an unknown parcel that the carrier knows', { answer: found, isKnown: false }, 'answered'],
  ['an unknown parcel that it does not know', { answer: () => notFound, isKnown: false }, 'not_found'],
  ['a known parcel in a language that it has', { answer: found, isKnown: true }, 'answered'],
  ['a known parcel that it does not know', { answer: () => notFound, isKnown: true }, 'answered'],
] as const

test.each(CASES)('P10: %s is one call when the other replica asks while it is asked', async (_, options, outcome) => {
  const { one, other, calls, gates } = await openTwo(options)
  const answer = Promise.withResolvers<void>()
  gates.call = answer.promise
  const first = one.ask()
  await gates.called.promise
  const second = other.ask()
  await other.waited
  answer.resolve()
  expect([await first, await second]).toEqual([outcome, outcome])
  expect(calls).toEqual(['sv'])
})

test.each(CASES)('P10: %s is one call when the other replica comes to ask right after', async (_, options, outcome) => {
  const { one, other, calls } = await openTwo(options)
  const read = Promise.withResolvers<void>()
  other.gate.read = read.promise
  const second = other.ask()
  const first = await one.ask()
  read.resolve()
  expect([first, await second]).toEqual([outcome, outcome])
  expect(calls).toEqual(['sv'])
})

test.each([
  ['the same replica', 'one'],
  ['the other replica', 'other'],
] as const)('4.2: a new parcel answered under another tag is one call when %s asks before that is noted', async (_, asker) => {
  const replicas = await openTwo({ answer: () => found('en'), isKnown: false })
  const { one, calls, gates } = replicas
  const note = Promise.withResolvers<void>()
  gates.note = note.promise
  const first = one.ask()
  await gates.noting.promise
  gates.called = Promise.withResolvers()
  const waited = replicas[asker].waitsAnew()
  const second = replicas[asker].ask()
  await Promise.race([waited, gates.called.promise])
  note.resolve()
  expect([await first, await second]).toEqual(['answered', 'answered'])
  expect(calls).toEqual(['sv'])
})

test('where "not found" is not remembered, a question that comes later asks the carrier again', async () => {
  const { one, other, calls } = await openTwo({ answer: () => notFound, isKnown: false, notFoundForMs: 0 })
  expect([await one.ask(), await other.ask()]).toEqual(['not_found', 'not_found'])
  expect(calls).toEqual(['sv', 'sv'])
})
