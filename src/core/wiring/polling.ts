import type { Config } from '../config/config.ts'
import { callsAllowedNow, mayAskAgain } from '../domain/polling/breaker.ts'
import type { CarrierMemory } from '../domain/polling/call-budget.ts'
import { createFailureLog } from '../flow/log-digest.ts'
import { createClaimAnswered, createPoller, createPollerPass, createPollsUnderWay, type PollsUnderWay } from '../flow/polling/poller.ts'
import { findCarrierOutage } from '../flow/polling/upstream.ts'
import { startWorker } from '../runtime/schedule.ts'
import type { History } from './open-history.ts'
import type { Relay } from './relay.ts'

/** The counts of calls to the carrier are saved at least this often, and after every few calls. */
const KEEP_MEMORY_MS = 30_000

type Parts = Pick<Relay, 'write' | 'clock' | 'disk' | 'replicas' | 'shared' | 'carrier' | 'isQuiet' | 'log'>

type OwnParts = Pick<Relay, 'reads' | 'pushes' | 'wakeDispatcher' | 'closing'> & { readonly history: History }

export type Polling = ReturnType<typeof openPolling>

/**
 * Assembles the poller, and the part that shifts its schedule when the clock was set back. `memory`: what the last run saved about the carrier;
 * null: nothing was saved.
 */
export function openPolling(config: Config, parts: Parts & OwnParts, memory: CarrierMemory | null) {
  const { clock, disk, replicas, shared, carrier, isQuiet, log, closing } = parts
  const underWay = createPollsUnderWay()
  const pass = openPass(config, { ...parts, memory, underWay })
  // A pass that fails because this replica is no longer the poller is no error.
  const failures = createFailureLog({ log, clock })
  const poller = startWorker(pass.pass, (error) => {
    const message = 'a pass of the poller failed; the poller continues when it is next woken'
    if (replicas.holds('poller')) failures.add('error', { err: error }, message)
    else log.debug({ err: error }, message)
  })
  closing.add(() => poller.stop())
  closing.add(() => carrier.close())

  let before = carrier.state().breaker.state
  let keptAtMs = clock.monotonic()
  const keepMemory = async () => {
    if (clock.monotonic() - keptAtMs < KEEP_MEMORY_MS) return
    keptAtMs = clock.monotonic()
    await carrier.keep()
  }
  return {
    underWay,
    poller,
    /** Logs in at once, so that operators see within seconds whether the carrier accepts the password. */
    begin(): void {
      carrier.logIn().catch((err: unknown) => log.debug({ err }, 'the login at the start failed; the next question logs in'))
      poller.wake()
    },
    /** Call when this replica has become the poller. */
    taken(): void {
      pass.begin()
      poller.wake()
    },
    /** Resolves when no poll is running and the next poller can take over. */
    async giveUp(): Promise<void> {
      await poller.rests()
      await shared?.model.handOver()
    },
    /**
     * Checks whether the carrier answers, if that is in doubt. Wakes the poller when its pause after failures is over, or an answer has ended it:
     * `poll.cron` may wake it much later.
     */
    async lookAtRest(): Promise<void> {
      if (!replicas.holds('poller') || isQuiet(clock.now())) return
      await carrier.lookAgain()
      const { breaker } = carrier.state()
      if (mayAskAgain(breaker, before)) poller.wake()
      before = breaker.state
    },
    /** Learns from the shared store whether the carrier fails or answers the poller, while that is another replica. */
    async lookAtOutage(): Promise<void> {
      if (shared === null || replicas.holds('poller')) return
      await findCarrierOutage(parts)
        .then((outage) => (replicas.holds('poller') ? undefined : carrier.resume(outage)))
        .catch((err: unknown) => log.debug({ err }, 'cannot read whether the carrier fails; the relay tries again'))
    },
    async lookAtClock(): Promise<void> {
      if (disk.trouble() === 'lost' || !replicas.holds('poller')) return
      await pass
        .adjustToClock()
        .then(keepMemory)
        .catch((err: unknown) => log.debug({ err }, 'cannot adjust the schedule to the clock; the relay retries'))
    },
  }
}

function openPass(
  config: Config,
  {
    replicas,
    carrier,
    isQuiet,
    history,
    memory,
    underWay,
    ...parts
  }: Parts & OwnParts & { readonly memory: CarrierMemory | null; readonly underWay: PollsUnderWay },
) {
  const { concurrency } = config.upstream
  const isPoller = () => replicas.holds('poller')
  const poll = createPoller(
    {
      ...history.ports,
      underWay,
      isQuiet,
      refresh: history.refresh,
      callsAllowed: () => (isPoller() ? callsAllowedNow(carrier.state().breaker, concurrency) : 0),
      failsSinceMs: () => carrier.state().breaker.sinceMs,
      claimAnswered: createClaimAnswered(history.ports, Math.random),
    },
    { concurrency },
  )
  const onShifted = () => {
    parts.wakeDispatcher()
    // Save the waits again. The saved waits end at times of the old clock.
    void carrier.keep()
  }
  const { disk, pushes, shared } = parts
  const storeTrouble = disk.trouble
  return createPollerPass(
    { ...parts, poll, isPoller, storeTrouble, model: shared?.model ?? null, lookAtPushes: pushes.update, onShifted },
    memory?.atMs ?? null,
  )
}
