import { AppError } from '../../domain/errors.ts'
import { lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import { fetchableLanguage } from '../../domain/languages.ts'
import type { Clock, Log, Memory } from '../ports.ts'
import { createSingleFlight } from '../single-flight.ts'
import type { Freshness, ParsedQuestion } from './answer.ts'
import type { FetchOnce, FetchOutcome } from './fetch-once.ts'

/** Until when the carrier is not asked about a known parcel again, and how fresh its answer counts meanwhile. */
export interface Pause {
  readonly untilMs: number
  readonly freshness: Freshness
}

export interface FetchOnMissPorts {
  /** Identifiers the carrier does not know, and until when (epoch milliseconds) that is believed. */
  readonly notFound: Memory<number>
  readonly pauses: Memory<Pause>
  /**
   * Counts a question of an app for an unknown identifier; null: admitted, else how long to wait in milliseconds
   * (`limits.unknownPerMinute`).
   */
  readonly admitUnknown: (app: string) => Promise<number | null>
  readonly log: Log
  readonly clock: Clock
}

export interface FetchOnMissOptions {
  /** `upstream.languages`, lower case, never empty; the first is the default. */
  readonly languages: readonly string[]
  readonly notFoundForMs: number
  readonly fetchUnknown: boolean
}

/** Asks the carrier about an identifier without a parcel. Returns once it has one, and throws if it gets none. */
export function createFetchUnknown(ports: FetchOnMissPorts, options: FetchOnMissOptions, carrier: FetchOnce, defaultLanguage: string) {
  const { notFound, clock } = ports
  const admissions = createSingleFlight<void>()

  const ask = async (question: ParsedQuestion): Promise<void> => {
    const retryAfterMs = await ports.admitUnknown(question.app)
    if (retryAfterMs !== null)
      throw new AppError('too_many_requests', 'Too many unknown tracking numbers. Ask again later.', { retryAfterMs })
    const language = fetchableLanguage(question.language ?? defaultLanguage, options.languages) ?? defaultLanguage
    const asked: FetchOutcome = options.fetchUnknown
      ? await carrier.aboutUnknown({ identifier: question.identifier, language })
      : { kind: 'not_found' }
    if (asked.kind === 'unavailable') {
      const { retryAfterMs } = asked
      throw new AppError('upstream_unavailable', 'This parcel is not known here, and the carrier cannot be asked now.', { retryAfterMs })
    }
    if (asked.kind === 'recorded') return
    notFound.set(question.identifier, clock.now() + options.notFoundForMs)
    throw notFoundError(options.fetchUnknown)
  }

  return async (question: ParsedQuestion): Promise<void> => {
    const untilMs = notFound.get(question.identifier)
    if (untilMs !== undefined && untilMs > clock.now()) throw notFoundError(options.fetchUnknown)
    // Counted once per app and flight: a thousand questions for one new parcel are one unknown identifier.
    await admissions(`${question.app} ${question.identifier}`, () => ask(question))
  }
}

/**
 * Asks the carrier for what a known parcel lacks, and returns how fresh the store then is. Never throws: if the carrier or the store fails,
 * the stored answer is served.
 */
export function createFetchKnown({ pauses, clock, log }: FetchOnMissPorts, options: FetchOnMissOptions, carrier: FetchOnce) {
  return async (view: ParcelView, { identifier }: ParsedQuestion, language: string, lacking: boolean): Promise<Freshness> => {
    const { parcelId } = view
    const key = `${parcelId} ${language}`
    const pause = pauses.get(key)
    if (pause !== undefined && pause.untilMs > clock.now()) return pause.freshness
    try {
      const asked = await carrier.aboutKnown({ parcelId, knownTo: lastSequenceOf(view.entries), identifier, language })
      if (asked.kind === 'recorded') return lacking || view.lastSeenAtMs === null ? 'fetched' : 'refreshed'
      const freshness = asked.kind === 'not_found' ? 'hit' : 'stale'
      const pauseMs = asked.kind === 'not_found' ? options.notFoundForMs : asked.retryAfterMs
      pauses.set(key, { untilMs: clock.now() + pauseMs, freshness })
      return freshness
    } catch (err) {
      log.warn({ err, parcelId }, 'the answer of the carrier could not be stored: serving what is known')
      return 'stale'
    }
  }
}

function notFoundError(isAsked: boolean): AppError {
  const carrier = isAsked ? 'and neither does the carrier' : 'and does not ask the carrier about unknown ones'
  return new AppError('not_found', `The relay does not know this tracking number, ${carrier}.`)
}
