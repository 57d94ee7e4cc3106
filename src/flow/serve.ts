import { AppError } from '../domain/errors.ts'
import { lackedLanguage } from '../domain/pull-response.ts'
import { type AskCarrier, type AskCarrierPorts, type Asked, createAskCarrier } from './ask-carrier.ts'
import type { Memory } from './memory.ts'
import type { Clock, Log, Meter, ParcelView, ReadSide, WriteSide } from './ports.ts'
import {
  type CachedAnswer,
  encodeAnswer,
  type Freshness,
  presentServed,
  type Question,
  type ReadQuestion,
  readQuestion,
  type Served,
} from './served.ts'
import { createSingleFlight } from './single-flight.ts'

/** Encoded answers by question. */
export interface AnswerCache {
  get(key: string): CachedAnswer | undefined
  set(key: string, answer: CachedAnswer): void
  /** Forgets every answer about these parcels. */
  invalidate(parcelIds: readonly number[]): void
}

/** Why a known parcel's carrier is not asked again just yet. */
export interface Pause {
  readonly untilMs: number
  readonly freshness: Freshness
}

export interface ServePorts extends AskCarrierPorts {
  readonly reads: Pick<ReadSide, 'findParcel'>
  readonly write: Pick<WriteSide, 'watch' | 'noteLanguageAsked' | 'noteNotPollable'>
  readonly cache: AnswerCache
  /** Identifiers the carrier does not know, and until when (epoch ms) that is believed. */
  readonly notFound: Memory<number>
  readonly pauses: Memory<Pause>
  /** Counts an unknown identifier of an app; null: admitted, else how long to wait (`limits.unknownPerMinute`). */
  readonly admitUnknown: (app: string) => Promise<number | null>
  readonly meter: Pick<Meter, 'served'>
  readonly log: Log
  readonly clock: Clock
}

export interface ServeOptions {
  /** `upstream.languages`, lower case, never empty; the first is the default. */
  readonly languages: readonly string[]
  readonly notFoundForMs: number
  readonly fetchUnknown: boolean
  readonly fetchMissingLanguage: boolean
  /** Null: never. */
  readonly refreshOlderThanMs: number | null
}

export interface Serve {
  /**
   * Answers an app's question. Throws `bad_tracking_number`, `bad_language`, `not_found`, `too_many_requests`, `upstream_unavailable` (unknown,
   * and the carrier cannot be asked) and `storage_unavailable`; never `not_found` for a trouble (DOMAIN 1.5).
   */
  ask(question: Question): Promise<Served>
  /** To be called after each commit and before what it recorded is acknowledged. */
  invalidate(parcelIds: readonly number[]): void
}

/** Builds the verb behind the pull API: the cache, then the store, and the carrier only for what the store lacks (DOMAIN 1.5, 4.2). */
export function createServe(ports: ServePorts, options: ServeOptions): Serve {
  const { cache, clock, meter } = ports
  const [defaultLanguage] = options.languages
  if (defaultLanguage === undefined) throw new RangeError('at least one language must be configured')
  /** One set per question that is being answered: the parcels that changed since it read the store. Their answers must not be kept. */
  const answering = new Set<Set<number>>()
  const carrier = createAskCarrier(ports)
  const askAboutUnknown = createUnknownQuestions(ports, options, carrier, defaultLanguage)
  const askForMore = createKnownQuestions(ports, options, carrier)

  const isOld = (heardAtMs: number | null) =>
    options.refreshOlderThanMs !== null && (heardAtMs === null || clock.now() - heardAtMs > options.refreshOlderThanMs)

  const answer = async (question: ReadQuestion, key: string, changed: Set<number>): Promise<Served> => {
    const look = () => {
      changed.clear()
      return findParcel(ports.reads, question.identifier)
    }
    let freshness: Freshness = 'hit'
    let view = await look()
    if (view === null) {
      await askAboutUnknown(question)
      freshness = 'fetched'
      view = await look()
    }
    if (view === null) throw new AppError('storage_unavailable', 'The answer is not readable yet. Ask again.', { retryAfterMs: 1000 })
    const watched = view.watched || (await revive(ports, question.identifier))
    const wanted = question.language ?? defaultLanguage
    const lacking = watched && lacksLanguage(view, wanted)
    let settled = watched
    if (lacking || isOld(view.heardAtMs) || isUnheard(view)) {
      const asked = await askForMore(view, question, lacking ? wanted : defaultLanguage, lacking)
      settled = watched && (asked === 'fetched' || asked === 'refreshed')
      freshness = asked === 'hit' ? freshness : asked
      view = (await look()) ?? view
    }
    const encoded = encodeAnswer(view, question, options.languages)
    if (encoded === null) throw new AppError('not_found', 'Nothing is known yet of this parcel.')
    // Kept only when nothing more is to be asked: a hit does not come by here again.
    if (settled && !changed.has(view.parcelId)) cache.set(key, encoded)
    meter.served(freshness === 'refreshed' ? 'fetched' : freshness)
    return presentServed(encoded, freshness, clock.now())
  }

  const lacksLanguage = (view: ParcelView, language: string) =>
    options.fetchMissingLanguage && !view.languagesAsked.includes(language) && lackedLanguage(view.entries, language)
  /** Watched by hand and not asked about yet: an app that asks need not wait for the schedule. */
  const isUnheard = (view: ParcelView) => options.fetchUnknown && view.heardAtMs === null && view.entries.length === 0

  return {
    async ask(asked) {
      const question = readQuestion(asked)
      const key = `${question.kind} ${question.identifier} ${question.language ?? ''}`
      const cached = cache.get(key)
      if (cached !== undefined && !isOld(cached.heardAtMs)) {
        meter.served('hit')
        return presentServed(cached, 'hit', clock.now())
      }
      const changed = new Set<number>()
      answering.add(changed)
      try {
        return await answer(question, key, changed)
      } catch (error) {
        if (error instanceof AppError) meter.served(error.code === 'not_found' ? 'not_found' : 'unavailable')
        throw error
      } finally {
        answering.delete(changed)
      }
    },
    invalidate(parcelIds) {
      cache.invalidate(parcelIds)
      for (const changed of answering) for (const parcelId of parcelIds) changed.add(parcelId)
    },
  }
}

/** Asks the carrier about an identifier no parcel has; returns once a parcel has it, and throws when none will. */
function createUnknownQuestions(ports: ServePorts, options: ServeOptions, carrier: AskCarrier, defaultLanguage: string) {
  const { notFound, clock } = ports
  const admissions = createSingleFlight<void>()

  const ask = async (question: ReadQuestion): Promise<void> => {
    const retryAfterMs = await ports.admitUnknown(question.app)
    if (retryAfterMs !== null)
      throw new AppError('too_many_requests', 'Too many unknown tracking numbers. Ask again later.', { retryAfterMs })
    const language = options.languages.find((configured) => configured === question.language) ?? defaultLanguage
    const asked: Asked = options.fetchUnknown
      ? await carrier.aboutUnknown({ identifier: question.identifier, language })
      : { kind: 'not_found' }
    if (asked.kind === 'unavailable') {
      const { retryAfterMs } = asked
      throw new AppError('upstream_unavailable', 'This parcel is not known here, and the carrier cannot be asked now.', { retryAfterMs })
    }
    if (asked.kind === 'recorded') return
    notFound.set(question.identifier, clock.now() + options.notFoundForMs)
    throw notFoundError()
  }

  return async (question: ReadQuestion): Promise<void> => {
    const untilMs = notFound.get(question.identifier)
    if (untilMs !== undefined && untilMs > clock.now()) throw notFoundError()
    // Counted once per app and flight: a thousand askers of one new parcel are one unknown identifier.
    await admissions(`${question.app} ${question.identifier}`, () => ask(question))
  }
}

/** Asks the carrier for what a known parcel lacks; says how fresh the store then is. Trouble is no failure: what is known is served. */
function createKnownQuestions({ pauses, clock, log }: ServePorts, options: ServeOptions, carrier: AskCarrier) {
  return async (view: ParcelView, { identifier }: ReadQuestion, language: string, lacking: boolean): Promise<Freshness> => {
    const { parcelId } = view
    const key = `${parcelId} ${language}`
    const pause = pauses.get(key)
    if (pause !== undefined && pause.untilMs > clock.now()) return pause.freshness
    try {
      const asked = await carrier.aboutKnown({ parcelId, identifier, language })
      if (asked.kind === 'recorded') return lacking || view.heardAtMs === null ? 'fetched' : 'refreshed'
      const freshness = asked.kind === 'not_found' ? 'hit' : 'stale'
      const pauseMs = asked.kind === 'not_found' ? options.notFoundForMs : asked.retryAfterMs
      pauses.set(key, { untilMs: clock.now() + pauseMs, freshness })
      return freshness
    } catch (err) {
      log.warn({ err, parcelId }, 'what the carrier answered could not be stored: serving what is known')
      return 'stale'
    }
  }
}

/** An app's question revives a parcel that is not watched (DOMAIN 6.1). A store that cannot write must still answer. */
async function revive({ write, log, clock }: ServePorts, identifier: string): Promise<boolean> {
  try {
    await write.watch({ identifier, nowMs: clock.now() })
    return true
  } catch (err) {
    log.warn({ err }, 'a parcel an app asked for could not be watched')
    return false
  }
}

async function findParcel(reads: Pick<ReadSide, 'findParcel'>, identifier: string): Promise<ParcelView | null> {
  try {
    return await reads.findParcel(identifier)
  } catch (cause) {
    throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
  }
}

function notFoundError(): AppError {
  return new AppError('not_found', 'Neither the relay nor the carrier knows this tracking number.')
}
