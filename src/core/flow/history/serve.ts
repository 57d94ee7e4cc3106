import { AppError } from '../../domain/errors.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import { fetchableLanguage } from '../../domain/languages.ts'
import type { ReadSide } from '../../store/read-store.ts'
import type { AnswerCache, CachedAnswer } from '../ports.ts'
import type { Part } from '../relay-part.ts'
import type { WriteSide } from '../write-side.ts'
import { encodeAnswer, type Freshness, type ParsedQuestion, parseQuestion, presentServed, type Question, type Served } from './answer.ts'
import {
  type Asked,
  createFetchKnown,
  createFetchOnce,
  createFetchUnknown,
  type FetchOnce,
  type FetchOncePorts,
  type FetchOnMissOptions,
  type FetchOnMissPorts,
  type SpentUntil,
  spentNote,
} from './fetch-on-miss.ts'

export interface ServePorts extends FetchOncePorts, FetchOnMissPorts, Part<'meter', 'served'> {
  readonly reads: Pick<ReadSide, 'findParcel' | 'parcelVersion'>
  readonly write: Pick<WriteSide, 'watch' | 'noteLanguageAsked' | 'noteNotPollable'>
  readonly cache: AnswerCache
}

export interface ServeOptions extends FetchOnMissOptions {
  readonly fetchMissingLanguage: boolean
  /** The carrier is asked if a parcel's last report is older than this; null: a report may have any age. */
  readonly refreshOlderThanMs: number | null
}

export type Serve = ReturnType<typeof createServe>

/** Creates the verb behind the pull API. It asks the carrier only for what neither the cache nor the store has (DOMAIN 1.5, 4.2). */
export function createServe(ports: ServePorts, options: ServeOptions) {
  const { cache, clock, meter, reads } = ports
  const [defaultLanguage] = options.languages
  if (defaultLanguage === undefined) throw new RangeError('at least one language must be configured')
  const carrier = createFetchOnce(ports, options)
  const answer = createAnswer(ports, options, carrier, defaultLanguage)

  const answerFromStore = async (question: ParsedQuestion, key: string): Promise<Served> => {
    try {
      const { encoded, freshness, settled, mark } = await answer(question)
      // A cached answer neither asks the carrier nor watches the parcel again. So cache only answers that need neither.
      if (settled) cache.set(key, encoded, mark)
      meter.served(freshness === 'refreshed' ? 'fetched' : freshness)
      return presentServed(encoded, freshness, clock.now())
    } catch (error) {
      if (error instanceof AppError) meter.served(['not_found', 'no_entry'].includes(error.code) ? 'not_found' : 'unavailable')
      throw error
    }
  }

  const findKept = (key: string): CachedAnswer | null => {
    const kept = cache.get(key)
    if (kept === undefined) return null
    const nowMs = clock.now()
    // If the clock was put back after the answer was cached, the answer's time lies in the future. The store has the corrected time.
    const isAhead = kept.lastSeenAtMs !== null && kept.lastSeenAtMs > nowMs
    return isAhead || isOlder(kept.lastSeenAtMs, nowMs, options) ? null : kept
  }

  const serveKept = (kept: CachedAnswer): Served => {
    meter.served('hit')
    return presentServed(kept, 'hit', clock.now())
  }

  return {
    /**
     * Answers an app's question. Throws `bad_tracking_number`, `bad_language`, `not_found`, `no_entry`, `too_many_requests`,
     * `upstream_unavailable` (nothing is known about the parcel, and the carrier cannot be asked) and `storage_unavailable`. Trouble is never
     * reported as `not_found` (DOMAIN 1.5).
     */
    async ask(asked: Question): Promise<Served> {
      const question = parseQuestion(asked)
      const key = keyOf(question)
      const kept = findKept(key)
      return kept !== null && (await isCurrent(ports, kept)) ? serveKept(kept) : await answerFromStore(question, key)
    },
    /** Returns the answer at once if it is cached and no query is needed; null: call `ask`. Throws only `bad_tracking_number` and `bad_language`. */
    fromCache(asked: Question): Served | null {
      const question = parseQuestion(asked)
      const kept = reads.parcelVersion === undefined ? findKept(keyOf(question)) : null
      return kept === null ? null : serveKept(kept)
    },
    /**
     * Asks the carrier, by an operator's order, about an identifier that no parcel has. Ignores earlier answers and the limits for apps.
     * `unknown`: the carrier does not know it, or its answer could not be used. Throws `erased` and `storage_unavailable`.
     */
    async fetchUnknown(identifier: string, operator: string): Promise<'recorded' | 'unknown' | 'unusable' | 'unavailable'> {
      const erasedAtMs = await ports.erasedAtMs(identifier)
      if (erasedAtMs !== null)
        throw new AppError('erased', `This identifier belongs to a parcel that was erased at ${new Date(erasedAtMs).toISOString()}.`)
      const { kind } = await carrier.aboutUnknown({ identifier, language: defaultLanguage, app: operator })
      return kind === 'not_found' ? 'unknown' : kind
    },
  }
}

function keyOf({ kind, identifier, language }: ParsedQuestion): string {
  return `${kind} ${identifier} ${language ?? ''}`
}

interface Answer {
  readonly encoded: CachedAnswer
  readonly freshness: Freshness
  /** Whether the answer may be cached: it lacks nothing that the carrier could add, and its parcel is watched. */
  readonly settled: boolean
  /** `cache.mark()` from before the store was read. */
  readonly mark: bigint
}

function createAnswer(ports: ServePorts, options: ServeOptions, carrier: FetchOnce, defaultLanguage: string) {
  const { clock } = ports
  const askAboutUnknown = createFetchUnknown(ports, options, carrier, defaultLanguage)
  const askForMore = createFetchKnown(ports, options, carrier)

  return async (question: ParsedQuestion): Promise<Answer> => {
    let mark = ports.cache.mark()
    const look = () => {
      mark = ports.cache.mark()
      return findParcel(ports.reads, question.identifier)
    }
    let freshness: Freshness = 'hit'
    let view = await look()
    if (view === null) {
      const refusal = await askAboutUnknown(question)
      freshness = refusal?.freshness ?? 'fetched'
      view = await look()
      // A push may have created the parcel meanwhile.
      if (refusal !== null && (view === null || hasNoReport(view))) throw refusal.error
      refusal?.pause()
    }
    if (view !== null && !view.watched && (await revive(ports, question.identifier))) view = await look()
    if (view === null) throw new AppError('storage_unavailable', 'The answer is not readable yet. Ask again.', { retryAfterMs: 1000 })
    const language = fetchableLanguage(question.language ?? defaultLanguage, options.languages)
    const lack = lackOf(view, language, clock.now(), options)
    let asked: Asked | null = null
    if (lack !== null) {
      const languageFor = (what: Lack) => (what === 'freshness' ? defaultLanguage : (language ?? defaultLanguage))
      const wanted = languageFor(lack)
      const isLacking = (now: ParcelView) => {
        const left = lackOf(now, language, clock.now(), options)
        return left !== null && languageFor(left) === wanted
      }
      asked = await askForMore(view, question, { language: wanted, isMissing: lack === 'language', isLacking })
      freshness = asked.freshness === 'hit' ? freshness : asked.freshness
      const found = await look()
      if (found === null) throw new AppError('storage_unavailable', 'The parcel has just changed. Ask again.', { retryAfterMs: 1000 })
      view = found
    }
    if (hasNoReport(view)) throw noReportError(view, asked, ports.spentUntilMs)
    const encoded = encodeAnswer(view, question, options.languages)
    if (encoded === null) throw new AppError('no_entry', 'This parcel is known, but no status of it yet.')
    const isComplete = lackOf(view, language, clock.now(), options) === null
    return { encoded, freshness, settled: isComplete && view.watched, mark }
  }
}

/** Something that the carrier could add to a parcel: a first answer, a missing language, or a newer answer. */
type Lack = 'answer' | 'language' | 'freshness'

/** Returns what a parcel lacks; null: nothing. `language`: the configured language of the answer; null: the app's language is not configured. */
function lackOf(view: ParcelView, language: string | null, nowMs: number, options: ServeOptions): Lack | null {
  // Ask the carrier now, so that the app does not have to wait for the scheduled poll.
  if (options.fetchUnknown && hasNoReport(view)) return 'answer'
  if (view.watched && language !== null && lacksLanguage(view, language, options)) return 'language'
  return isOlder(view.lastSeenAtMs, nowMs, options) ? 'freshness' : null
}

/** Whether no push and no poll has ever reported on a parcel. */
function hasNoReport({ lastSeenAtMs, entries }: ParcelView): boolean {
  return lastSeenAtMs === null && entries.length === 0
}

/**
 * Chooses the error for a parcel without a report. `not_found` is right only if the carrier has said that it does not know the parcel
 * (DOMAIN 1.5). `asked` null: the carrier was not asked.
 */
function noReportError({ unknownToCarrier }: ParcelView, asked: Asked | null, spentUntilMs: SpentUntil | undefined): AppError {
  if (unknownToCarrier || asked?.freshness === 'hit') return new AppError('not_found', 'The carrier does not know this tracking number.')
  return new AppError('upstream_unavailable', `The carrier has not said anything about this parcel yet.${spentNote(spentUntilMs)}`, {
    retryAfterMs: asked?.retryAfterMs ?? NOT_ASKED_YET_MS,
  })
}

/** A newly watched parcel is polled within about a minute. */
const NOT_ASKED_YET_MS = 60_000

function isOlder(lastSeenAtMs: number | null, nowMs: number, { refreshOlderThanMs }: ServeOptions): boolean {
  return refreshOlderThanMs !== null && (lastSeenAtMs === null || nowMs - lastSeenAtMs > refreshOlderThanMs)
}

function lacksLanguage(view: ParcelView, language: string, { fetchMissingLanguage }: ServeOptions): boolean {
  return fetchMissingLanguage && !view.languagesAsked.includes(language) && isLanguageMissing(view.entries, language)
}

/**
 * Watches a parcel again because an app has asked (DOMAIN 6.1). Returns false if the parcel was erased meanwhile or the store cannot be
 * written. Never throws, because the app must get its answer in both cases.
 */
async function revive({ write, log, clock }: ServePorts, identifier: string): Promise<boolean> {
  try {
    return (await write.watch({ identifier, nowMs: clock.now() })) !== null
  } catch (err) {
    log.warn({ err }, 'a parcel that an app asked for could not be watched')
    return false
  }
}

async function findParcel(reads: Pick<ReadSide, 'findParcel'>, identifier: string): Promise<ParcelView | null> {
  return await reads.findParcel(identifier).catch(throwUnreadable)
}

/** If only this process writes to the store, the cache knows every change. */
async function isCurrent({ reads, meter }: ServePorts, { parcelId, version }: CachedAnswer): Promise<boolean> {
  if (reads.parcelVersion === undefined) return true
  try {
    return (await reads.parcelVersion(parcelId)) === version
  } catch (cause) {
    meter.served('unavailable')
    return throwUnreadable(cause)
  }
}

function throwUnreadable(cause: unknown): never {
  throw new AppError('storage_unavailable', 'The store cannot be read now.', { cause, retryAfterMs: 5000 })
}
