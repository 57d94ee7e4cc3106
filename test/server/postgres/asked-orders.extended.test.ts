import { expect, test, vi } from 'vitest'
import type { CarrierAnswer } from '../../../src/core/domain/polling/carrier-answer.ts'
import { aPoll } from '../../support/history/builders.ts'
import { openAskingReplica } from '../../support/network/asking-replica.ts'
import { NOON } from '../../support/runner/constants.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../support/runner/seeded.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const NOT_FOUND_FOR_MS = 300_000
const SEEDS = byForm(2, 6, 60)
const STEPS = byForm(25, 60)
const LANGUAGES = ['en', 'sv'] as const
const IDS = ['1001', '1002', '1003']
const LATE = { timeout: 60_000, interval: 5 }

interface Call {
  readonly replica: number
  readonly identifier: string
  readonly language: string
  readonly answer: (answer: CarrierAnswer) => void
}

/** Opens two replicas, and a carrier whose answers the test gives. Lists in `wrong` what breaks the rules for asking the carrier. */
async function openWorld(seed: number) {
  const random = seeded(seed)
  const { below } = drawWith(random)
  const { url } = await createDatabase()
  const clock = { nowMs: 0 }
  const wrong: string[] = []
  const open: Call[] = []
  const questions: Promise<void>[] = []
  /** When a replica last learnt from the carrier that an identifier is unknown, by replica, identifier and language. */
  const unknownAt = new Map<string, number>()
  const pushed = new Set<string>()
  /** The requests under way. `isLate`: the identifier was pushed after the request began, so its answer may lack that push. */
  const asking = new Set<{ readonly identifier: string; isLate: boolean }>()
  /** The languages in which an identifier was answered since its last push. */
  const answered = new Set<string>()
  const replicas = await Promise.all(
    [0, 1].map((replica) =>
      openAskingReplica(url, {
        nowMs: NOON,
        notFoundForMs: NOT_FOUND_FOR_MS,
        cacheBytes: 1_000_000,
        fetchAll: ({ identifier, language }) =>
          new Promise((answer) => {
            const same = open.find((one) => one.identifier === identifier && (one.language === language || !pushed.has(identifier)))
            if (same !== undefined) wrong.push(`asked twice at once about ${identifier} in ${language}`)
            const since = clock.nowMs - (unknownAt.get(`${replica} ${identifier} ${language}`) ?? Number.NEGATIVE_INFINITY)
            if (answered.has(`${identifier} ${language}`)) wrong.push(`asked about ${identifier} in ${language} though that was answered`)
            if (since < NOT_FOUND_FOR_MS) wrong.push(`asked again about ${identifier} in ${language} after ${since} ms`)
            open.push({ replica, identifier, language, answer })
          }),
      }),
    ),
  )
  const answerOne = () => {
    const [call] = open.splice(below(open.length), 1)
    if (call === undefined) return
    const { identifier, language, replica } = call
    const kind = below(4)
    const isLate = [...asking].some((one) => one.identifier === identifier && one.isLate)
    const tag = below(3) === 0 ? 'en' : language
    if (kind === 0) call.answer({ kind: 'unavailable', reason: 'network', retryAfterMs: 1 })
    else if (kind === 1) {
      if (!isLate) answered.add(`${identifier} ${language}`)
      const askedAtMs = NOON + clock.nowMs + answered.size
      call.answer({ kind: 'found', observation: aPoll({ asked: identifier, language: tag, askedAtMs, trackingIds: [identifier] }) })
    } else {
      // If the identifier was pushed after the request began, the replica must not remember that it is unknown.
      if (!isLate) unknownAt.set(`${replica} ${identifier} ${language}`, clock.nowMs)
      call.answer({ kind: 'not_found' })
    }
  }
  const ask = (replica: number, identifier: string, language: string) => {
    const wasPushed = pushed.has(identifier)
    const question = { identifier, isLate: false }
    asking.add(question)
    const ending = async () => {
      const outcome = String(await replicas[replica]?.ask(identifier, language))
      asking.delete(question)
      const isRight = wasPushed ? outcome === 'answered' : ['answered', 'not_found', 'upstream_unavailable'].includes(outcome)
      if (!isRight) wrong.push(`${identifier}${wasPushed ? ', which was pushed,' : ''}: ${outcome}`)
    }
    questions.push(ending())
  }
  return {
    wrong,
    async step() {
      const [kind, replica, identifier] = [random(), below(2), IDS[below(IDS.length)] ?? '']
      if (kind < 0.5) ask(replica, identifier, LANGUAGES[below(2)] ?? 'en')
      else if (kind < 0.75) answerOne()
      else if (kind < 0.82) {
        for (const language of LANGUAGES) answered.delete(`${identifier} ${language}`)
        for (const one of asking) if (one.identifier === identifier) one.isLate = true
        const eventTime = new Date(NOON - 3_600_000 + below(1000) * 1000).toISOString()
        await replicas[replica]?.push({ trackingIds: [identifier], eventTime, texts: { en: 'Arrived' } })
        // Requests that began during the push count as late too.
        for (const one of asking) if (one.identifier === identifier) one.isLate = true
        pushed.add(identifier)
        // After a push, replicas may ask again about an identifier that was unknown.
        for (const key of unknownAt.keys()) if (key.includes(identifier)) unknownAt.delete(key)
      } else if (kind < 0.9) await new Promise((resolve) => setTimeout(resolve, below(40)))
      else {
        const ms = [1000, 60_000, NOT_FOUND_FOR_MS + 1][below(3)] ?? 0
        clock.nowMs += ms
        for (const one of replicas) one.pass(ms)
      }
    },
    async end() {
      let isOver = false
      const over = Promise.all(questions).then(() => {
        isOver = true
      })
      await vi.waitFor(() => {
        while (open.length > 0) answerOne()
        expect(isOver).toBe(true)
      }, LATE)
      await over
    },
  }
}

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  '1.5: two replicas poll no parcel too often, and find every pushed parcel (order %i)',
  async (seed) => {
    const world = await openWorld(seed)
    for (let step = 0; step < STEPS; step++) await world.step()
    await world.end()
    expect(world.wrong).toEqual([])
  },
)
