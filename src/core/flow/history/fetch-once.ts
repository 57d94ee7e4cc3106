import { AppError, lacksRoom, NO_ROOM_TEXT } from '../../domain/errors.ts'
import { lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import type { IncomingPoll, RecordOutcome } from '../../domain/history/recording.ts'
import { isUnusable } from '../../domain/polling/carrier-answer.ts'
import type { Carrier } from '../ports.ts'
import type { Reads, Writes } from '../relay.ts'
import { alone, type Flight, type SharedFlight } from '../shared-flight.ts'
import { createSingleFlight } from '../single-flight.ts'

/** The result of asking the carrier on behalf of an app. */
export type FetchOutcome =
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
export interface FetchOnce {
  /** Asks about an identifier that no parcel has, with one call for all apps and languages (DOMAIN 1.5). */
  aboutUnknown(question: Question): Promise<FetchOutcome>
  /** Asks about a known parcel, with one call for each language (DOMAIN 4.2). */
  aboutKnown(question: KnownQuestion): Promise<FetchOutcome>
}

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
): FetchOnce {
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
    aboutUnknown: (question) =>
      fly(question.identifier, async () => {
        // Another call may have recorded the parcel since this caller read the store.
        if ((await reads.findParcel(question.identifier)) !== null) return { kind: 'recorded' }
        return ask(question, null)
      }),
    // Wait for a running `aboutUnknown` call first, because it may bring what this question lacks.
    aboutKnown: (question) => {
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
