import { expect, test } from 'vitest'
import type { CarrierAnswer } from '../../../src/core/domain/polling/carrier-answer.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { aPoll } from '../../support/history/builders.ts'
import { openAskingReplica } from '../../support/network/asking-replica.ts'
import { NOON } from '../../support/runner/constants.ts'
import { newPlace } from '../../support/store/engines.ts'

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

/** Opens two replicas that answer apps from one database, and counts their calls to the carrier. */
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
    const gate = { read: Promise.resolve() }
    let waited = Promise.withResolvers<void>()
    const replica = await openAskingReplica(place, {
      nowMs: NOON,
      notFoundForMs,
      cacheBytes: 0,
      async fetchAll({ language }) {
        calls.push(language)
        gates.called.resolve()
        await gates.call
        return answer(language)
      },
      async onRead() {
        const { read } = gate
        gate.read = Promise.resolve()
        await read
      },
      async beforeNote() {
        gates.noting.resolve()
        await gates.note
      },
      onWait: () => waited.resolve(),
    })
    const waitsAnew = () => {
      waited = Promise.withResolvers()
      return waited.promise
    }
    return { ...replica, ask: () => replica.ask(NUMBER, 'sv'), gate, waited: waited.promise, waitsAnew }
  }
  const [one, other] = [await open(), await open()]
  if (isKnown) await one.poll({ asked: NUMBER, language: 'en' })
  return { one, other, calls, gates }
}

const CASES = [
  ['a parcel that only the carrier knows', { answer: found, isKnown: false }, 'answered'],
  ['a parcel that neither side knows', { answer: () => notFound, isKnown: false }, 'not_found'],
  ['a known parcel in a language that the carrier has', { answer: found, isKnown: true }, 'answered'],
  ['a known parcel that the carrier does not know', { answer: () => notFound, isKnown: true }, 'answered'],
] as const

test.each(CASES)('P10: a request for %s causes one call if the other replica asks during that call', async (_, options, outcome) => {
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

test.each(CASES)('P10: a request for %s causes one call if the other replica asks right after that call', async (_, options, outcome) => {
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
] as const)('4.2: while an answer in another language is not noted yet, %s makes no second call', async (_, asker) => {
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

test('without a memory of "not found", a later request asks the carrier again', async () => {
  const { one, other, calls } = await openTwo({ answer: () => notFound, isKnown: false, notFoundForMs: 0 })
  expect([await one.ask(), await other.ask()]).toEqual(['not_found', 'not_found'])
  expect(calls).toEqual(['sv', 'sv'])
})
