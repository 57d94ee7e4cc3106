import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  ANSWERS_MAX,
  betterOrderAnswer,
  type KeptAnswer,
  keepAnswers,
  presentParcel,
} from '../../../../src/core/domain/history/pull-response.ts'
import { casesOf } from '../../../support/runner/long-form.ts'

/** Answers with few different bodies at many times. `nth` stands for the body: all that is read from the body depends only on `nth`. */
const answer: fc.Arbitrary<KeptAnswer> = fc
  .record({ nth: fc.nat(40), language: fc.constantFrom('en', 'sv'), askedAtMs: fc.nat(60) })
  .map(({ nth, language, askedAtMs }) => ({
    language,
    askedAtMs,
    digest: String((nth * 7919) % 1000).padStart(64, '0'),
    entryCount: nth % 5,
    flawed: nth % 7 === 0,
    trackingIds: [`100${nth % 3}`],
    distributionType: nth % 4 === 0 ? `Type ${nth}` : null,
    extra: [['ageSeconds', String(nth)] as const],
  }))
const answers = fc.array(answer, { size: 'max', minLength: 10, maxLength: 80 })
const seed = 20261125
const RUNS = casesOf(500, 80)

test('3.2: the kept answers are the same for any order of arrival and removal', () => {
  let dropped = 0
  const property = fc.property(
    answers.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
    ([all, again]) => {
      const oneByOne = (list: readonly KeptAnswer[]) =>
        list.reduce<readonly KeptAnswer[]>((kept, one) => keepAnswers(kept.concat(one)).kept, [])
      const sorted = (list: readonly KeptAnswer[]) => list.map((one) => JSON.stringify(one)).sort()
      const { kept, order } = keepAnswers(all)
      expect(sorted(oneByOne(all))).toEqual(sorted(kept))
      expect(sorted(oneByOne(again))).toEqual(sorted(kept))
      expect(keepAnswers(again).order).toEqual(order)
      if (kept.length < new Set(all.map(({ language, digest }) => language + digest)).size) dropped++
    },
  )
  fc.assert(property, { numRuns: RUNS, seed })
  expect(dropped).toBeGreaterThan(0.6 * RUNS)
})

test('2.5, 3.1: dropping an answer changes no history', () => {
  fc.assert(
    fc.property(answers, (all) => {
      const { kept, order } = keepAnswers(all)
      expect(presentParcel([], kept, [])).toEqual(presentParcel([], all, []))
      expect(order).toEqual(all.reduce<KeptAnswer | null>(betterOrderAnswer, null))
      for (const language of ['en', 'sv']) {
        expect(kept.filter((one) => one.language === language).length).toBeLessThanOrEqual(ANSWERS_MAX + 2)
      }
    }),
    { numRuns: RUNS, seed },
  )
})
