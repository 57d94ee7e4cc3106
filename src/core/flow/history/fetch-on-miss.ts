import { AppError, lacksRoom, NO_ROOM_TEXT } from '../../domain/errors.ts'
import { lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import type { IncomingPoll, RecordOutcome } from '../../domain/history/recording.ts'
import { type Rest, restAfter } from '../../domain/instant.ts'
import { fetchableLanguage } from '../../domain/languages.ts'
import { describeSpent } from '../../domain/polling/call-budget.ts'
import { isUnusable } from '../../domain/polling/carrier-answer.ts'
import type { Carrier, Memory } from '../ports.ts'
import type { Reads, Relay, Writes } from '../relay-part.ts'
import { alone, createSingleFlight, type Flight, type SharedFlight } from '../shared-flight.ts'
import type { Freshness, ParsedQuestion } from './answer.ts'

/** Until `untilMs` (monotonic), the carrier is not asked about a known parcel, and answers from the store have this `freshness`. */
export interface Pause {
  readonly untilMs: number
  readonly freshness: Freshness
}

export interface FetchOnMissPorts extends Pick<Relay, 'log' | 'clock'> {
  /**
   * Until when the relay does not ask again about an identifier that the carrier does not know. Monotonic milliseconds, because a wall clock
   * may be put back.
   */
  readonly notFound: Memory<number>
  readonly pauses: Memory<Pause>
  /** Until when the relay does not ask again about an identifier, because the carrier's last answer could not be used. */
  readonly rests: Memory<Rest>
  /**
   * Counts an app's question about an unknown identifier against `limits.unknownPerMinute`. Resolves with the time that the app must wait, in
   * milliseconds; null: the question is within the limit.
   */
  readonly admitUnknown: (app: string) => Promise<number | null>
  readonly erasedAtMs: (identifier: string) => Promise<number | null>
  /** Absent: it is not known whether the day's calls to the carrier are used up. */
  readonly spentUntilMs?: SpentUntil
}

export interface FetchOnMissOptions {
  /** `upstream.languages`, lower case, never empty; the first is the default. */
  readonly languages: readonly string[]
  readonly notFoundForMs: number
  readonly fetchUnknown: boolean
}

export interface Refusal {
  readonly error: AppError
  readonly freshness: Freshness
  /** Call it if a push has created a parcel for the identifier meanwhile. Then the carrier is not asked about that parcel at once. */
  readonly pause: () => void
}

/**
 * Asks the carrier about an identifier that no parcel has. Resolves with null if the answer was recorded. Then a parcel has the identifier.
 * Resolves with a `Refusal` if no answer was recorded, or if `fetchUnknown` is off.
 *
 * Throws without asking: `not_found` while a 404 is remembered or if the parcel was erased, `upstream_unavailable` while the identifier rests,
 * `too_many_requests` if the app asks about too many unknown identifiers.
 */
export function createFetchUnknown(ports: FetchOnMissPorts, options: FetchOnMissOptions, carrier: FetchOnce, defaultLanguage: string) {
  const { notFound, pauses, clock } = ports
  const rests = createRests(ports)
  const admissions = createSingleFlight<Refusal | null>()

  const ask = async (question: ParsedQuestion): Promise<Refusal | null> => {
    const retryAfterMs = await ports.admitUnknown(question.app)
    if (retryAfterMs !== null)
      throw new AppError('too_many_requests', 'Too many unknown tracking numbers. Ask again later.', { retryAfterMs })
    // Do not tell an app that the parcel was erased, because that would reveal that it existed.
    if ((await ports.erasedAtMs(question.identifier)) !== null) throw notFoundError(options.fetchUnknown)
    const language = fetchableLanguage(question.language ?? defaultLanguage, options.languages) ?? defaultLanguage
    const asked: FetchOutcome = options.fetchUnknown
      ? await carrier.aboutUnknown({ identifier: question.identifier, language, app: question.app })
      : { kind: 'not_found' }
    const restMs = rests.after(question.identifier, asked)
    if (asked.kind === 'recorded') return null
    if (asked.kind === 'unusable')
      return { error: unavailableError(restMs, ports.spentUntilMs), freshness: 'stale', pause: () => undefined }
    const isUnknown = asked.kind === 'not_found'
    const forMs = isUnknown ? options.notFoundForMs : asked.retryAfterMs
    const untilMs = clock.monotonic() + forMs
    const freshness = isUnknown ? 'hit' : 'stale'
    if (isUnknown) notFound.set(question.identifier, untilMs)
    return {
      error: isUnknown ? notFoundError(options.fetchUnknown) : unavailableError(forMs, ports.spentUntilMs),
      freshness,
      pause: () => pauses.set(pauseKey(question.identifier, language), { untilMs, freshness }),
    }
  }

  return async (question: ParsedQuestion): Promise<Refusal | null> => {
    const untilMs = notFound.get(question.identifier)
    if (untilMs !== undefined && untilMs > clock.monotonic()) throw notFoundError(options.fetchUnknown)
    const restMs = rests.left(question.identifier)
    if (restMs > 0) throw unavailableError(restMs, ports.spentUntilMs)
    // If an app asks about one identifier many times at once, all its requests share one question, which counts once against the limit.
    return await admissions(`${question.app} ${question.identifier}`, () => ask(question))
  }
}

/** The result of asking about a known parcel. `retryAfterMs`: asking again sooner brings nothing new. */
export interface Asked {
  readonly freshness: Freshness
  readonly retryAfterMs: number
}

/** What the store lacks about a known parcel and the carrier may give. */
export interface Wanted {
  readonly language: string
  /** Whether texts in the language are missing. If not, the relay has no report on the parcel yet, or only an old one. */
  readonly isMissing: boolean
  /** Whether the parcel still lacks this after it was read again. */
  readonly isLacking: (view: ParcelView) => boolean
}

const STORE_RETRY_MS = 30_000

/**
 * Asks the carrier for an answer about a known parcel. The freshness of the result is `fetched` or `refreshed` if the carrier's answer was
 * recorded, `hit` if the carrier does not know the parcel, and `stale` if the carrier or the store failed. Never throws.
 */
export function createFetchKnown(ports: FetchOnMissPorts, options: FetchOnMissOptions, carrier: FetchOnce) {
  const { pauses, clock, log } = ports
  const rests = createRests(ports)

  return async (view: ParcelView, { identifier, app }: ParsedQuestion, { language, isMissing, isLacking }: Wanted): Promise<Asked> => {
    const { parcelId } = view
    const key = pauseKey(identifier, language)
    const pause = pauses.get(key)
    const pausedMs = (pause?.untilMs ?? 0) - clock.monotonic()
    if (pause !== undefined && pausedMs > 0) return { freshness: pause.freshness, retryAfterMs: pausedMs }
    const restMs = rests.left(identifier)
    if (restMs > 0) return { freshness: 'stale', retryAfterMs: restMs }
    try {
      const asked = await carrier.aboutKnown({ parcelId, identifier, language, app, isLacking })
      const restsMs = rests.after(identifier, asked)
      if (asked.kind === 'recorded')
        return { freshness: isMissing || view.lastSeenAtMs === null ? 'fetched' : 'refreshed', retryAfterMs: 0 }
      if (asked.kind === 'unusable') return { freshness: 'stale', retryAfterMs: restsMs }
      const freshness = asked.kind === 'not_found' ? 'hit' : 'stale'
      const retryAfterMs = asked.kind === 'not_found' ? options.notFoundForMs : asked.retryAfterMs
      pauses.set(key, { untilMs: clock.monotonic() + retryAfterMs, freshness })
      return { freshness, retryAfterMs }
    } catch (err) {
      log.warn({ err, parcelId }, 'the answer of the carrier could not be stored: the app gets what is in the store')
      return { freshness: 'stale', retryAfterMs: STORE_RETRY_MS }
    }
  }
}

/** The key has the identifier and not the parcel's id, because a database server that has lost commits may give the id to another parcel. */
const pauseKey = (identifier: string, language: string) => `${identifier} ${language}`

/** An identifier rests after an answer that cannot be used: no app's question about it goes to the carrier. An operator's refresh ignores this. */
function createRests({ rests, clock }: Pick<FetchOnMissPorts, 'rests' | 'clock'>) {
  return {
    /** Returns how many milliseconds an identifier still rests; 0: it does not rest. */
    left: (identifier: string): number => Math.max(0, (rests.get(identifier)?.untilMs ?? 0) - clock.monotonic()),
    /** Notes how a question ended. Returns how many milliseconds its identifier rests now. */
    after(identifier: string, asked: FetchOutcome): number {
      if (asked.kind === 'unavailable') return 0
      if (asked.kind !== 'unusable') {
        rests.delete(identifier)
        return 0
      }
      const nowMs = clock.monotonic()
      const rest = restAfter(rests.get(identifier), nowMs, asked.retryAfterMs)
      rests.set(identifier, rest)
      return rest.untilMs - nowMs
    },
  }
}

function unavailableError(retryAfterMs: number, spentUntilMs: SpentUntil | undefined): AppError {
  const detail = `This parcel is not known here, and the carrier cannot be asked now.${spentNote(spentUntilMs)}`
  return new AppError('upstream_unavailable', detail, { retryAfterMs })
}

function notFoundError(isAsked: boolean): AppError {
  const carrier = isAsked ? 'and neither does the carrier' : 'and does not ask the carrier about unknown ones'
  return new AppError('not_found', `The relay does not know this tracking number, ${carrier}.`)
}

/** The result of asking the carrier on behalf of an app. */
type FetchOutcome =
  | { readonly kind: 'recorded' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number }
  /**
   * The carrier's answer cannot be recorded, or does not say whether the carrier knows the parcel. `retryAfterMs`: how long the
   * carrier has asked the relay to wait; 0: it has not.
   */
  | { readonly kind: 'unusable'; readonly retryAfterMs: number }

export interface FetchOncePorts extends Reads<'findParcel'>, Writes<'noteLanguageAsked' | 'noteNotPollable'> {
  readonly carrier: Pick<Carrier, 'fetchAll'>
  readonly recorder: { submit(incoming: IncomingPoll): Promise<RecordOutcome> }
  /** Makes one call for all replicas that ask the same question at the same time; absent: there are no other replicas. */
  readonly together?: SharedFlight
}

/**
 * Makes one call to the carrier for all apps that ask the same question at the same time. They get the answer after it was recorded. Throws
 * only `storage_unavailable`.
 */
export type FetchOnce = ReturnType<typeof createFetchOnce>

interface Question {
  readonly identifier: string
  readonly language: string
  /** The app that asks first. The call counts as this app's. */
  readonly app: string
}

interface KnownQuestion extends Question {
  readonly parcelId: number
  /** Whether the carrier could still add something to the stored parcel. */
  readonly isLacking: (view: ParcelView) => boolean
}

/** A parcel, and the highest sequence of its entries before the carrier was asked. */
interface KnownParcel {
  readonly parcelId: number
  readonly knownTo: number
}

/** How long an app is asked to wait if the carrier has sent no `Retry-After`. */
const RETRY_AFTER_MS = 30_000

export function createFetchOnce(
  { carrier, recorder, reads, write, together = alone }: FetchOncePorts,
  { notFoundForMs }: { readonly notFoundForMs: number },
) {
  const flights = createSingleFlight<FetchOutcome>()

  const ask = async ({ identifier, language, app }: Question, known: KnownParcel | null): Promise<FetchOutcome> => {
    const answer = await carrier.fetchAll({ identifier, language, priority: 'app', spender: `app:${app}`, ofNobody: known === null })
    if (answer.kind === 'not_found') return answer
    if (answer.kind === 'unavailable') {
      const { retryAfterMs = null } = answer
      if (isUnusable(answer)) return { kind: 'unusable', retryAfterMs: retryAfterMs ?? 0 }
      return { kind: 'unavailable', retryAfterMs: retryAfterMs ?? RETRY_AFTER_MS }
    }
    const { observation } = answer
    const outcome = await recorder.submit({ kind: 'poll', observation, watch: true })
    if (outcome.kind === 'expired' || outcome.kind === 'erased') return { kind: 'not_found' }
    if (outcome.kind === 'quarantined') return { kind: 'unusable', retryAfterMs: 0 }
    const parcelId = outcome.kind === 'recorded' ? outcome.parcelId : (known?.parcelId ?? null)
    // The answer may have another language tag. Note the language that was asked for, so that the next question does not ask the carrier again.
    if (parcelId !== null && (known !== null || observation.language !== language)) {
      const answer = { language: observation.language, askedAtMs: observation.askedAtMs }
      await write.noteLanguageAsked({ parcelId, language, knownTo: known?.knownTo ?? 0, answer })
    }
    return { kind: 'recorded' }
  }

  const fly = (key: string, start: () => Promise<FetchOutcome>, after: string | null = null) =>
    flights(key, async () => {
      if (after !== null) await flights.underWay(after)?.catch(() => undefined)
      return await together(key, { start, after, notFoundForMs, ...PASSED_ON }).catch(throwStorageTrouble)
    })

  return {
    /** Asks about an identifier that no parcel has, with one call for all apps and languages (DOMAIN 1.5). */
    aboutUnknown: (question: Question): Promise<FetchOutcome> =>
      fly(question.identifier, async () => {
        // Another call may have recorded the parcel since this caller read the store.
        if ((await reads.findParcel(question.identifier)) !== null) return { kind: 'recorded' }
        return ask(question, null)
      }),
    // Wait for a running `aboutUnknown` call first, because it may bring what this question lacks.
    /** Asks about a known parcel, with one call for each language (DOMAIN 4.2). */
    aboutKnown: (question: KnownQuestion): Promise<FetchOutcome> => {
      const { parcelId, identifier, language, isLacking } = question
      const start = async (): Promise<FetchOutcome> => {
        // Another call, perhaps of another replica, may have fetched the answer since this caller read the store.
        const view = await reads.findParcel(identifier)
        if (view !== null && !isLacking(view)) return { kind: 'recorded' }
        const known = view === null ? { parcelId, knownTo: 0 } : { parcelId: view.parcelId, knownTo: lastSequenceOf(view.entries) }
        const asked = await ask(question, known)
        if (asked.kind === 'not_found') await write.noteNotPollable(identifier)
        return asked
      }
      return fly(`${parcelId} ${language}`, start, identifier)
    },
  }
}

const PASSED_ON: Pick<Flight<FetchOutcome>, 'endOf' | 'read'> = {
  endOf: (outcome) => ({ kind: outcome.kind, retryAfterMs: 'retryAfterMs' in outcome ? outcome.retryAfterMs : null }),
  read: ({ kind, retryAfterMs }) => {
    if (kind === 'unusable') return { kind, retryAfterMs: retryAfterMs ?? 0 }
    if (kind === 'unavailable') return { kind, retryAfterMs: retryAfterMs ?? RETRY_AFTER_MS }
    return kind === 'recorded' || kind === 'not_found' ? { kind } : null
  },
}

/** Failures of the carrier are returned as values, so an exception comes from the store. */
function throwStorageTrouble(cause: unknown): never {
  if (cause instanceof AppError) throw cause
  const why = lacksRoom(cause) ? ` ${NO_ROOM_TEXT}` : ''
  throw new AppError('storage_unavailable', `The answer of the carrier could not be stored now.${why}`, {
    cause,
    retryAfterMs: RETRY_AFTER_MS,
  })
}

/** Returns the time until which the day's calls to the carrier are used up, epoch milliseconds; null: they are not used up. */
export type SpentUntil = () => number | null

/** Returns a sentence to add to a message if the day's calls are known to be used up; otherwise ''. */
export function spentNote(spentUntilMs: SpentUntil | undefined): string {
  const untilMs = spentUntilMs?.() ?? null
  return untilMs === null ? '' : ` ${describeSpent(untilMs)}`
}
