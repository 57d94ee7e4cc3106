import type { CallSpender } from '../../domain/admin/tally.ts'
import { lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelView } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { IncomingPoll, RecordOutcome } from '../../domain/history/recording.ts'
import {
  type CallPriority,
  type CarrierAnswer,
  type FlightEnd,
  isOfAll,
  isUnusable,
  type UnavailableReason,
  wasNotAsked,
} from '../../domain/polling/carrier-answer.ts'
import type { DuePoll, PollFailure } from '../../domain/polling/poll.ts'
import type { Carrier } from '../ports.ts'
import type { Part, Reads, Relay, Writes } from '../relay-part.ts'
import { alone, type SharedFlight } from '../shared-flight.ts'

export interface RefreshPorts
  extends Pick<Relay, 'clock'>,
    Part<'meter', 'pollEnded'>,
    Reads<'findParcel'>,
    Writes<'notePollFailure' | 'noteNotPollable' | 'noteLanguageAsked'> {
  readonly carrier: Pick<Carrier, 'fetchAll'>
  readonly recorder: { submit(incoming: IncomingPoll): Promise<RecordOutcome> }
  /** Makes only one poll if several replicas get the same order at once; absent: there are no other replicas. */
  readonly together?: SharedFlight
  /** Returns a signal for a scheduled poll. The signal is aborted when the lease of this replica runs out, because it must not poll then. */
  readonly lapse?: () => AbortSignal
  /** Since when the carrier answers no question, epoch milliseconds; undefined: it answers some. */
  readonly failsSinceMs?: () => number | undefined
}

export interface RefreshOptions {
  /** Language tags in lower case. Scheduled polls ask in the first language. */
  readonly languages: readonly [string, ...string[]]
}

/**
 * The outcome of a poll. `recorded`: the carrier's answer is on disk. `unknown`: the carrier knows none of the identifiers. `unusable`: the
 * carrier gave no usable answer, but other polls may still work. `unavailable`: the carrier cannot be asked about any parcel now.
 */
export type Refreshed = 'recorded' | 'unknown' | 'unusable' | 'unavailable'

/** The outcome of a scheduled poll. `lapsed`: the lease of this replica has run out, and no result was saved. */
export type PollEnd = Refreshed | 'lapsed'

export type Refresh = ReturnType<typeof createRefresh>

export function createRefresh(ports: RefreshPorts, { languages }: RefreshOptions) {
  const [first, ...others] = languages
  const { together = alone, lapse } = ports
  return {
    /** Makes a poll that no app waits for: in the first language, and in other languages only if texts are missing (DOMAIN 6.2). */
    async poll(due: DuePoll, by: 'schedule' | 'watchdog' = 'schedule'): Promise<PollEnd> {
      // Use one signal for the whole poll. If the replica loses its lease during the poll, it may get a new lease with a new signal, which
      // would not end the poll.
      const signal = lapse?.()
      const further = (view: ParcelView) => missingLanguages(view, others)
      try {
        return await pollOne(ports, due, { language: first, priority: by, spender: by, further, signal })
      } catch (error) {
        // If the lease has run out, this is no failure, because the replica that becomes the poller asks again.
        if (hasLapsed({ signal })) return 'lapsed'
        throw error
      }
    },
    /** Makes a poll that an operator has ordered: now, in every configured language. */
    refreshNow: (due: DuePoll): Promise<Refreshed> =>
      together(`refresh ${due.parcelId}`, {
        after: null,
        // An order that comes after the end of this poll asks the carrier again.
        notFoundForMs: 0,
        start: async () => {
          const end = await pollOne(ports, due, { language: first, priority: 'app', spender: 'operator', further: () => others })
          return end === 'lapsed' ? 'unavailable' : end
        },
        endOf,
        read: readEnd,
      }),
  }
}

type Failure = CarrierAnswer & { readonly kind: 'unavailable' }

/** The failure that is noted if an answer could not be recorded. */
const NOT_RECORDED: Failure = { kind: 'unavailable', reason: 'bad_response' }

interface Asking {
  readonly language: string
  readonly priority: CallPriority
  readonly spender: CallSpender
  /** Returns the languages in which to ask after the first one. */
  readonly further: (view: ParcelView) => readonly string[]
  readonly signal?: AbortSignal | undefined
}

function endOf(refreshed: Refreshed): FlightEnd {
  return { kind: refreshed === 'unknown' ? 'not_found' : refreshed, retryAfterMs: null }
}

function readEnd({ kind }: FlightEnd): Refreshed | null {
  if (kind === 'failed') return null
  return kind === 'not_found' ? 'unknown' : kind
}

/** Tries identifiers in their order until the carrier knows one (DOMAIN 6.3). */
async function pollOne(ports: RefreshPorts, due: DuePoll, asking: Asking): Promise<PollEnd> {
  for (const identifier of due.identifiers) {
    const answer = await ask(ports, identifier, asking)
    if (answer.kind === 'unavailable') return await giveUp(ports, due, answer, asking)
    if (answer.kind === 'not_found') {
      await ports.write.noteNotPollable(identifier)
      continue
    }
    const parcelId = await record(ports, answer.observation)
    // The parcel was erased during the poll, so there is nothing to note about it.
    if (parcelId === 'erased') return 'unknown'
    if (parcelId === null) return await giveUp(ports, due, NOT_RECORDED, asking)
    const view = await ports.reads.findParcel(identifier)
    if (view === null) return 'recorded'
    for (const language of asking.further(view)) {
      const more = await ask(ports, identifier, {
        ...asking,
        language,
        spender: asking.priority === 'app' ? asking.spender : 'language',
      })
      if (more.kind === 'unavailable') return hasLapsed(asking) ? 'lapsed' : endOfFailure(more.reason, asking)
      if (more.kind === 'found') await record(ports, more.observation)
      const listed = more.kind === 'found' ? { language: more.observation.language, askedAtMs: more.observation.askedAtMs } : null
      await ports.write.noteLanguageAsked({ parcelId, language, knownTo: lastSequenceOf(view.entries), answer: listed })
    }
    return 'recorded'
  }
  if (hasLapsed(asking)) return 'lapsed'
  await ports.write.notePollFailure({ parcelId: due.parcelId, kind: 'unknown', atMs: ports.clock.now() })
  return 'unknown'
}

function hasLapsed({ signal }: Pick<Asking, 'signal'>): boolean {
  return signal?.aborted === true
}

async function ask({ carrier, meter }: RefreshPorts, identifier: string, asking: Omit<Asking, 'further'>): Promise<CarrierAnswer> {
  const { language, priority, spender, signal } = asking
  const answer = await carrier.fetchAll({ identifier, language, priority, spender, ...(signal === undefined ? {} : { signal }) })
  const result = answer.kind === 'unavailable' ? answer.reason : answer.kind
  // Do not count a poll that was aborted because the lease has run out: it says nothing about the carrier.
  if (answer.kind !== 'unavailable' || !hasLapsed(asking)) meter.pollEnded(result)
  return answer
}

/** Saves that the poll has failed, so that the parcel is polled again. */
async function giveUp({ write, clock, failsSinceMs }: RefreshPorts, due: DuePoll, answer: Failure, asking: Asking): Promise<PollEnd> {
  // If the lease has run out, the poll has not failed, and the replica that becomes the poller schedules the parcel.
  if (hasLapsed(asking)) return 'lapsed'
  const { reason, retryAfterMs } = answer
  await write.notePollFailure({
    parcelId: due.parcelId,
    kind: failureKindOf(answer),
    atMs: clock.now(),
    failsSinceMs: failsSinceMs?.(),
    // One answer ends a pause early, so a poll that was not made in a pause stays due. The poller makes no others meanwhile.
    ...(retryAfterMs === undefined || reason === 'resting' ? {} : { retryAfterMs }),
  })
  return endOfFailure(reason, asking)
}

function failureKindOf(answer: Failure): PollFailure['kind'] {
  if (wasNotAsked(answer.reason)) return 'not_asked'
  return answer !== NOT_RECORDED && isUnusable(answer) ? 'unusable' : 'unavailable'
}

/** `unusable` lets the schedule continue with other parcels, because the carrier may still answer about them. */
function endOfFailure(reason: UnavailableReason, { priority }: Asking): Refreshed {
  if (isUnusable({ kind: 'unavailable', reason })) return 'unusable'
  return priority !== 'app' && !isOfAll(reason) ? 'unusable' : 'unavailable'
}

/** Returns the id of the parcel for which the answer was recorded; null: it was not recorded. */
async function record({ recorder }: RefreshPorts, observation: IncomingPoll['observation']): Promise<number | 'erased' | null> {
  const outcome = await recorder.submit({ kind: 'poll', observation, watch: false })
  if (outcome.kind === 'erased') return 'erased'
  return outcome.kind === 'recorded' ? outcome.parcelId : null
}

function missingLanguages(view: ParcelView, others: readonly string[]): readonly string[] {
  return others.filter((language) => !view.languagesAsked.includes(language) && isLanguageMissing(view.entries, language))
}
