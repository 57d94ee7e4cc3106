import { callsAllowedNow } from '../../core/domain/polling/breaker.ts'
import { carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import type { DuePoll } from '../../core/domain/polling/poll.ts'
import type { Duty } from '../../core/flow/ports.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'
import { createHold } from './hold-verdicts.ts'
import { type Sight, sightOf } from './watchdog.rules.ts'

const LOOK_EVERY_MS = 1000
/** Small, because a push that arrives during a look waits for it. */
const LOOKED_AT_ONCE = 64
/** At most this many polls are made at once, so that the schedule and apps find room. */
const POLLS_AT_ONCE = 4
/** If the result of a poll gets lost, the parcel can be polled again after this time. */
const LEASE_MS = 5 * 60_000
/** A parcel whose poll failed is asked about again after this time. */
const REST_MS = 5 * 60_000
/** A carrier that has answered any question this lately is answering. */
const ANSWERS_WITHIN_MS = 2 * REST_MS
/** With so many parcels at rest something else is wrong, and nothing more is asked meanwhile. */
const RESTING_MAX = 500
/** Without rules, it is looked this seldom. */
const SETTLED_MS = 60_000
/** When the carrier could not be asked at all, nothing is asked for this long. */
const PAUSE_MS = 5000

/** Watches over parcels: looks at what is due, asks the carrier about those that may be stalled, and tells which are (DOMAIN 9). */
export function watchdogDuty(parts: DutyParts & Capabilities): Duty {
  const { write, clock, settings, duties, retired, wakeDispatcher, replicas } = parts
  const publish = (told: number) => {
    if (told === 0) return
    retired()
    wakeDispatcher()
  }
  const ask = createAsking(parts, publish)
  const hold = createHold(parts)
  /** Until when no rule is left, and nothing that was told by one. Another replica may then have told something. */
  let settledUntilMs = Number.NEGATIVE_INFINITY
  return {
    role: 'poller',
    everyMs: LOOK_EVERY_MS,
    afterOrders: true,
    failure: 'parcels could not be watched over; the relay tries again',
    async pass() {
      const hasRules = (settings().watchdogs ?? []).length > 0
      if (!hasRules && clock.monotonic() < settledUntilMs) return 'idle'
      const { sight, mayAsk } = await look(parts)
      const nowMs = clock.now()
      const isMixed = hasRules && (await haveDifferentConfigs(replicas))
      const request = { nowMs, limit: LOOKED_AT_ONCE, mayTellUnchecked: sight === 'pushes', isMixed }
      const { told, looked, isMore } = await duties.inTurn(() => write.lookAtWatched(request))
      publish(told)
      settledUntilMs = !hasRules && looked === 0 ? clock.monotonic() + SETTLED_MS : Number.NEGATIVE_INFINITY
      await hold.note(sight === 'none', nowMs)
      if (mayAsk) await ask.some(sight === 'none')
      if (isMore) return 'busy'
      return (await ask.oneEnded()) ? 'busy' : 'idle'
    },
  }
}

/** Whether another replica may note by other rules what its pushes begin. */
async function haveDifferentConfigs(replicas: DutyParts['replicas']): Promise<boolean> {
  return replicas.count() > 1 && new Set((await replicas.list()).map(({ configFingerprint }) => configFingerprint)).size > 1
}

/** Finds out what the relay can see of parcels, and whether to ask the carrier. Also a carrier that does not answer is asked, until calls pause. */
async function look({ write, carrier, clock }: DutyParts): Promise<{ readonly sight: Sight; readonly mayAsk: boolean }> {
  const state = carrier.state()
  const { breaker, refusal, lastFailure } = state
  const { kind } = carrierStanding(state)
  if (kind === 'answers' || kind === 'unasked') return { sight: 'polls', mayAsk: true }
  const nowMs = clock.now()
  const { health, lastPushAtMs } = await write.pushChannel()
  const pollsFailSinceMs = breaker.sinceMs ?? breaker.unanswered?.sinceMs ?? refusal?.atMs ?? lastFailure?.atMs ?? nowMs
  return { sight: sightOf({ nowMs, pollsFailSinceMs, pushesAreHealthy: health === 'healthy', lastPushAtMs }), mayAsk: kind === 'troubled' }
}

/** Asks the carrier about parcels before they are told to be stalled. */
function createAsking(parts: DutyParts & Capabilities, publish: (told: number) => void) {
  const { write, clock, settings, carrier, isQuiet, history, polling, duties, log } = parts
  const underWay = new Map<number, Promise<void>>()
  /** When parcels whose polls failed may be asked about again, by a monotonic clock. */
  const resting = new Map<number, number>()
  let pausedUntilMs = 0

  async function askOne({ parcelId, identifiers }: DuePoll): Promise<void> {
    const end = await polling.underWay.during(parcelId, () => history.refresh.poll({ parcelId, identifiers }, 'watchdog'))
    if (end === 'unavailable' || end === 'lapsed') {
      pausedUntilMs = clock.monotonic() + PAUSE_MS
      return
    }
    if (end === 'unusable') resting.set(parcelId, clock.monotonic() + REST_MS)
    // If the carrier answers other questions, the polls of this parcel are at fault.
    const { lastAnswerAtMs } = carrier.state()
    const isAnswering = lastAnswerAtMs !== null && clock.now() - lastAnswerAtMs <= ANSWERS_WITHIN_MS
    publish((await write.settleSuspect({ parcelId, nowMs: clock.now(), isUnknown: end === 'unknown', isAnswering })).told)
  }

  function roomNow(): number {
    for (const [parcelId, untilMs] of resting) if (untilMs <= clock.monotonic()) resting.delete(parcelId)
    if (isQuiet(clock.now()) || clock.monotonic() < pausedUntilMs || resting.size > RESTING_MAX || duties.stopping.aborted) return 0
    const most = Math.min(POLLS_AT_ONCE, settings().upstream.concurrency)
    return callsAllowedNow(carrier.state().breaker, most) - underWay.size
  }

  return {
    /** Begins as many polls as there is room for. */
    async some(isDeaf: boolean): Promise<void> {
      const limit = roomNow()
      if (limit <= 0) return
      const except = [...underWay.keys(), ...resting.keys()]
      const { suspects, told } = await write.claimSuspects({ nowMs: clock.now(), limit, leaseMs: LEASE_MS, except, isDeaf })
      publish(told)
      for (const suspect of suspects) {
        const asking = askOne(suspect)
          .catch((err: unknown) => log.debug({ err, parcelId: suspect.parcelId }, 'a poll for a watchdog failed; the relay tries again'))
          .finally(() => underWay.delete(suspect.parcelId))
        underWay.set(suspect.parcelId, asking)
      }
    },
    /** Resolves when a poll has ended, at most after a moment, with whether any was under way. When the relay stops, waits for all. */
    async oneEnded(): Promise<boolean> {
      if (underWay.size === 0) return false
      const moment = new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
      await Promise.race([...underWay.values(), moment])
      if (duties.stopping.aborted) await Promise.all(underWay.values())
      return true
    },
  }
}
