import { onTestFinished } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { IncomingPoll } from '../../../src/core/domain/history/recording.ts'
import type { Rest } from '../../../src/core/domain/instant.ts'
import type { CarrierAnswer } from '../../../src/core/domain/polling/carrier-answer.ts'
import type { QuestionKind } from '../../../src/core/flow/history/answer.ts'
import type { Pause } from '../../../src/core/flow/history/fetch-on-miss.ts'
import { createServe, type ServeOptions } from '../../../src/core/flow/history/serve.ts'
import { createRefresh } from '../../../src/core/flow/polling/refresh.ts'
import { createAnswerCache, createChangeTable, tellChanged } from '../../../src/core/runtime/answer-cache.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../runner/constants.ts'
import { newPlace } from '../store/engines.ts'
import { incomingPush } from '../store/write-side.ts'
import { aPoll, pushBody } from './builders.ts'
import { strictLog } from './observed.ts'
import { deliverOptions, recordOptions } from './policy.ts'

const LANGUAGES = ['en', 'sv'] as const

/** One step of a run. `parcel`: the number of the parcel, from 0. */
export type Step =
  | { readonly kind: 'push' | 'watch' | 'unwatch' | 'refresh'; readonly parcel: number }
  | { readonly kind: 'polls' }
  | { readonly kind: 'pass'; readonly ms: number }
  /** Sets how the carrier answers about a parcel from now on. `listed`: with as many entries as were pushed. */
  | { readonly kind: 'carrier'; readonly parcel: number; readonly mood: CarrierMood }
  /** `pushedMeanwhile`: an entry is pushed while the carrier is being asked. */
  | {
      readonly kind: 'ask'
      readonly parcel: number
      readonly language: string | undefined
      readonly question: QuestionKind
      readonly pushedMeanwhile: boolean
    }

export type CarrierMood = 'listed' | 'english' | 'empty' | 'not_found' | 'down' | 'refused'

const trackingNumber = (parcel: number) => `AB${String(parcel).padStart(6, '0')}SE`
const trackingId = (parcel: number) => String(1000 + parcel)

/** Opens a relay that answers from a real store in simulated time. Returns a function that takes a step and returns all that an observer sees. */
export async function openCacheModel(engine: Engine, cacheBytes: number, options: Partial<ServeOptions> = {}) {
  let nowMs = NOON
  const clock = { now: () => nowMs, monotonic: () => nowMs - NOON }
  const changes = createChangeTable()
  const place = await newPlace(engine)
  const changed = (parcelIds: readonly number[]) => tellChanged(changes, parcelIds)
  const settings = { sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions }
  const write = await openWriteSide(settings, clock, strictLog, changed)
  const reads = engine.openReadStore(place)
  onTestFinished(async () => {
    await reads.close()
    await write.close()
  })
  const moods = new Map<string, CarrierMood>()
  const pushed = new Map<number, number>()
  let seen: string[] = []
  let meanwhile: (() => Promise<void>) | null = null

  const record = async (incoming: Parameters<typeof write.record>[0][number]) => {
    const { outcomes, touchedParcels } = await write.record([incoming])
    changed(touchedParcels)
    const [outcome] = outcomes
    if (outcome === undefined) throw new Error('a batch without an outcome')
    return outcome
  }
  const eventTime = (parcel: number, at: number) => new Date(NOON - HOUR_MS + at * MINUTE_MS + parcel).toISOString()
  const push = async (parcel: number) => {
    const at = pushed.get(parcel) ?? 0
    pushed.set(parcel, at + 1)
    const body = pushBody({ trackingIds: [trackingId(parcel)], eventTime: eventTime(parcel, at), texts: { en: `pushed ${at}` } })
    await record(incomingPush(body, nowMs))
  }
  const answerTo = (identifier: string, language: string, askedAtMs: number): CarrierAnswer => {
    const mood = moods.get(identifier) ?? 'listed'
    if (mood === 'not_found') return { kind: 'not_found' }
    if (mood === 'down') return { kind: 'unavailable', reason: 'timeout' }
    if (mood === 'refused') return { kind: 'unavailable', reason: 'rejected' }
    const parcel = identifier.startsWith('AB') ? Number(identifier.slice(2, -2)) : Number(identifier) - 1000
    const statuses = Array.from({ length: mood === 'empty' ? 0 : (pushed.get(parcel) ?? 0) }, (_, at) => ({
      eventTimestamp: eventTime(parcel, at),
      detailedStatusDescription: `${language} ${at}`,
    }))
    const answered = mood === 'english' ? 'en' : language
    return {
      kind: 'found',
      observation: aPoll({ asked: identifier, language: answered, askedAtMs, trackingIds: [trackingId(parcel)], statuses }),
    }
  }
  const carrier = {
    async fetchAll({ identifier, language }: { readonly identifier: string; readonly language: string }) {
      seen.push(`asked ${identifier} ${language}`)
      const answer = answerTo(identifier, language, nowMs)
      await meanwhile?.()
      return answer
    },
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const meter = { pollEnded: () => undefined, served: () => undefined }
  const recorder = { submit: (incoming: IncomingPoll) => record(incoming) }
  const ports = { carrier, recorder, reads, write, meter, clock, log }
  const refresh = createRefresh(ports, { languages: LANGUAGES })
  const cache = createAnswerCache({ bytesMax: cacheBytes, changes })
  const serve = createServe(
    {
      ...ports,
      cache,
      notFound: new Map<string, number>(),
      pauses: new Map<string, Pause>(),
      rests: new Map<string, Rest>(),
      admitUnknown: async () => null,
      erasedAtMs: async () => null,
    },
    {
      languages: LANGUAGES,
      notFoundForMs: 5 * MINUTE_MS,
      fetchUnknown: true,
      fetchMissingLanguage: true,
      refreshOlderThanMs: null,
      ...options,
    },
  )

  const polls = async () => {
    for (;;) {
      const due = await write.claimDuePolls({ nowMs, limit: 16, leaseMs: MINUTE_MS })
      // Sort by id, because the order of polls that are due at the same time depends on the engine.
      for (const one of due.toSorted((a, b) => a.parcelId - b.parcelId)) seen.push(await refresh.poll(one))
      if (due.length === 0) return
    }
  }
  const ask = async ({ parcel, language, question, pushedMeanwhile }: Step & { kind: 'ask' }) => {
    meanwhile = pushedMeanwhile
      ? async () => {
          meanwhile = null
          await push(parcel)
        }
      : null
    const asked = { app: 'shop', identifier: trackingNumber(parcel), language, kind: question }
    const served = await Promise.resolve(serve.fromCache(asked) ?? serve.ask(asked)).then(
      ({ body, ...rest }) => JSON.stringify({ ...rest, body: body.toString() }),
      (error: { readonly code: string; readonly retryAfterMs?: number }) => `${error.code} ${error.retryAfterMs}`,
    )
    meanwhile = null
    seen.push(served)
  }

  return async (step: Step): Promise<readonly string[]> => {
    seen = []
    if (step.kind === 'push') await push(step.parcel)
    if (step.kind === 'watch') await write.watch({ identifier: trackingNumber(step.parcel), nowMs })
    if (step.kind === 'unwatch') await write.unwatch({ identifier: trackingNumber(step.parcel) })
    if (step.kind === 'refresh') {
      const due = await write.claimPoll({ identifier: trackingNumber(step.parcel), nowMs, leaseMs: MINUTE_MS })
      if (due !== null) seen.push(await refresh.refreshNow(due))
    }
    if (step.kind === 'polls') await polls()
    if (step.kind === 'pass') nowMs += step.ms
    if (step.kind === 'carrier') for (const name of [trackingNumber, trackingId]) moods.set(name(step.parcel), step.mood)
    if (step.kind === 'ask') await ask(step)
    return seen
  }
}
