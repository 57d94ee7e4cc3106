import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import { createParcelCommands } from '../../../src/console/parcels/parcel-commands.ts'
import type { CarrierAnswer } from '../../../src/core/domain/polling/carrier-answer.ts'
import type { DuePoll } from '../../../src/core/domain/polling/poll.ts'
import { createClockRollback, createPoller, createPollsUnderWay } from '../../../src/core/flow/polling/poller.ts'
import { createRefresh, type PollEnd } from '../../../src/core/flow/polling/refresh.ts'
import type { Carrier } from '../../../src/core/flow/ports.ts'
import { startWorker } from '../../../src/core/runtime/schedule.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { aPoll, pushBody } from '../history/builders.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { NOON } from '../runner/constants.ts'
import { SHORT } from '../runner/long-form.ts'
import { seeded } from '../runner/seeded.ts'
import { newPlace } from '../store/engines.ts'
import { incomingPush } from '../store/write-side.ts'

export const MINUTE_MS = 60_000
export const CONCURRENCY = 4
/** How often the poller looks for due parcels. */
export const WAKE_MS = SHORT ? 5 * MINUTE_MS : MINUTE_MS
type CarrierQuestion = Parameters<Carrier['fetchAll']>[0]

const LANGUAGES = ['en', 'sv'] as const
const STATUSES = ['Created', 'TerminalArrived', 'DeliveryStarted'] as const

export type Ended = 'found' | 'not kept' | Exclude<PollEnd, 'recorded'>

/** Observes polls. `ordered`: an operator has ordered the poll. */
export interface Watcher {
  begins(due: DuePoll): void
  ordered(due: DuePoll): void
  ended(due: DuePoll, how: Ended, retryAfterMs: number): void
}

export type World = Awaited<ReturnType<typeof openPollingWorld>>

/** Opens a poller over a real store in simulated time, with a carrier whose failures depend on the seed. */
export async function openPollingWorld(engine: Engine, seed: number, parcels: number, watcher: Watcher) {
  const place = await newPlace(engine)
  const random = seeded(seed)
  const pick = (least: number, most: number) => Math.floor(least + random() * (most - least + 1))
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>()
  const entries = Array.from({ length: parcels }, () => 0)
  const state = { isQuiet: false, callsAllowed: CONCURRENCY, isWell: false }
  let elapsedMs = 0
  let offsetMs = 0
  let runs = 0
  const clock = { now: () => NOON + elapsedMs + offsetMs, monotonic: () => elapsedMs }
  /** The number of calls to the store that have not returned yet. */
  let asked = 0
  const counted = <Verbs extends object>(verbs: Verbs): Verbs =>
    countCalls(verbs, (change) => {
      asked += change
    })
  /** Waits until only timers are left. */
  const settled = async () => {
    do await new Promise(setImmediate)
    while (asked > 0)
  }
  const after = (ms: number, run: () => void) => timers.add({ atMs: elapsedMs + ms, run })

  /** Adds an entry to a parcel at the carrier. */
  const happen = (parcel: number) => {
    entries[parcel] = (entries[parcel] ?? 0) + 1
  }
  const timeOf = (parcel: number, at: number) => new Date(NOON - 3_600_000 + parcel * 1000 + at * 61_000).toISOString()
  const statusOf = (parcel: number, at: number) => STATUSES[(parcel + at) % STATUSES.length] ?? 'Created'

  function answerTo({ identifier, language }: CarrierQuestion, askedAtMs: number): CarrierAnswer {
    const parcel = parcelOf(identifier)
    const mood = state.isWell ? 1 : random()
    if (mood < 0.06) return { kind: 'not_found' }
    if (mood < 0.1) return { kind: 'unavailable', reason: 'rate_limited', retryAfterMs: pick(1, 20) * MINUTE_MS }
    if (mood < 0.14) return { kind: 'unavailable', reason: 'timeout' }
    if (mood < 0.17) return { kind: 'unavailable', reason: 'bad_response' }
    if (mood < 0.2) return { kind: 'unavailable', reason: 'rejected', retryAfterMs: pick(1, 60) * MINUTE_MS }
    const statuses = Array.from({ length: entries[parcel] ?? 0 }, (_, at) => ({
      status: statusOf(parcel, at),
      eventTimestamp: timeOf(parcel, at),
      detailedStatusDescription: `${language} ${at}`,
      consumerDescription: `${language} ${at}`,
    }))
    return { kind: 'found', observation: aPoll({ asked: identifier, language, askedAtMs, trackingIds: [trackingId(parcel)], statuses }) }
  }

  async function start(lastSeenMs: number | null) {
    const own = ++runs
    const meter = { pollEnded: () => undefined, missedPush: () => undefined }
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const write = counted(await openWriteSide({ sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions }, clock, log))
    const reads = counted(engine.openReadStore(place))
    let retryAfterMs = 0
    const lastAskedIn = new Map<number, string>()
    const carrier = {
      // A killed run never gets an answer.
      fetchAll: (question: CarrierQuestion) =>
        new Promise<CarrierAnswer>((resolve) => {
          const askedAtMs = clock.now()
          lastAskedIn.set(parcelOf(question.identifier), question.language)
          const slow = !state.isWell && random() < 0.12
          after(slow ? pick(1, 15) * MINUTE_MS : pick(50, 2000), () => {
            if (own !== runs) return
            const answer = answerTo(question, askedAtMs)
            retryAfterMs = answer.kind === 'unavailable' ? (answer.retryAfterMs ?? 0) : 0
            resolve(answer)
          })
        }),
    }
    const recorder = {
      async submit(incoming: Parameters<Parameters<typeof createRefresh>[0]['recorder']['submit']>[0]) {
        if (!state.isWell && random() < 0.03) return { kind: 'quarantined', reason: 'failed' } as const
        if (!state.isWell && random() < 0.02) throw new Error('the disk is full')
        const [outcome] = (await write.record([incoming])).outcomes
        if (outcome === undefined) throw new Error('a batch without an outcome')
        return outcome
      },
    }
    const refresh = createRefresh({ carrier, recorder, reads, write, meter, clock }, { languages: LANGUAGES })
    const watched = async <End extends PollEnd>(due: DuePoll, work: () => Promise<End>): Promise<End> => {
      try {
        const how = await work()
        // A poll asks in the second language (sv) only after it has recorded the answer in the first language.
        const isKept = how === 'recorded' || lastAskedIn.get(parcelOf(due.identifiers[0] ?? '')) === 'sv'
        watcher.ended(due, isKept ? 'found' : how, isKept ? 0 : retryAfterMs)
        return how
      } catch (error) {
        watcher.ended(due, 'not kept', 0)
        throw error
      }
    }
    const poll = (due: DuePoll) => {
      watcher.begins(due)
      return watched(due, () => refresh.poll(due))
    }
    const underWay = createPollsUnderWay()
    const pass = createPoller(
      {
        write,
        refresh: { poll },
        underWay,
        meter,
        clock,
        log,
        isQuiet: () => state.isQuiet,
        callsAllowed: () => state.callsAllowed,
      },
      { concurrency: CONCURRENCY },
    )
    const followClock = createClockRollback({ write, clock, log, onShifted: () => undefined }, lastSeenMs)
    const worker = startWorker(
      async () => {
        await followClock()
        return await pass()
      },
      (error) => {
        throw error
      },
    )
    const wakeOn = () =>
      after(WAKE_MS, () => {
        if (own !== runs) return
        worker.wake()
        wakeOn()
      })
    const lookOn = () =>
      after(5000, () => {
        if (own !== runs) return
        void followClock()
        lookOn()
      })
    wakeOn()
    lookOn()
    worker.wake()
    const refreshNow = (due: DuePoll) => {
      watcher.ordered(due)
      return watched(due, () => refresh.refreshNow(due))
    }
    const fetchUnknown = async () => 'unknown' as const
    const manage = createParcelCommands({
      write,
      refresh: { refreshNow },
      fetchUnknown,
      underWay,
      whyNotAsked: () => '',
      whyUnusable: () => '',
      clock,
    })
    const close = async () => {
      await reads.close()
      await write.close()
    }
    return { write, reads, manage, close }
  }

  let relay = await start(null)
  await relay.write.watchMany({ identifiers: Array.from({ length: parcels }, (_, at) => trackingNumber(at)), nowMs: clock.now() })

  return {
    random,
    pick,
    state,
    clock,
    relay: () => relay,
    happen,
    async pushLatest(parcel: number) {
      happen(parcel)
      const at = (entries[parcel] ?? 1) - 1
      const [status, eventTime] = [statusOf(parcel, at), timeOf(parcel, at)]
      const body = pushBody({ trackingIds: [trackingId(parcel)], status, eventTime, texts: { en: `pushed ${at}` } })
      await relay.write.record([incomingPush(body, clock.now())])
    },
    /** Restarts the relay as after a kill: running polls are lost, and the last saved time is up to 30 s old. */
    async kill() {
      runs += 1
      const seenMs = clock.now() - pick(0, 30) * 1000
      await relay.close()
      relay = await start(seenMs)
    },
    setOffset: (ms: number) => {
      offsetMs = ms
    },
    async pass(ms: number) {
      const endMs = elapsedMs + ms
      for (;;) {
        await settled()
        let next: { readonly atMs: number; readonly run: () => void } | null = null
        for (const timer of timers) if (next === null || timer.atMs < next.atMs) next = timer
        if (next === null || next.atMs > endMs) break
        timers.delete(next)
        elapsedMs = next.atMs
        next.run()
      }
      elapsedMs = endMs
    },
  }
}

export const trackingNumber = (parcel: number) => `PM${String(parcel).padStart(4, '0')}SE`
const trackingId = (parcel: number) => String(90_000 + parcel)

export function parcelOf(identifier: string): number {
  return identifier.startsWith('PM') ? Number(identifier.slice(2, 6)) : Number(identifier) - 90_000
}

/** Wraps functions. `count` gets +1 for each call, and -1 when the call's promise has settled. */
function countCalls<Verbs extends object>(verbs: Verbs, count: (change: 1 | -1) => void): Verbs {
  return new Proxy(verbs, {
    get(target, name) {
      const verb: unknown = Reflect.get(target, name)
      if (typeof verb !== 'function') return verb
      return (...args: readonly unknown[]) => {
        count(1)
        const answer: unknown = Reflect.apply(verb, target, args)
        return Promise.resolve(answer).finally(() => count(-1))
      }
    },
  })
}
