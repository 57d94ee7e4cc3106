import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { ClaimedDelivery, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { addEndpoint } from '../delivery/stored-endpoint.ts'
import { strictLog } from '../history/observed.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { seededObservations, trackingIdOf, trackingNumberOf } from '../history/seeded-observations.ts'
import { MINUTE_MS, NOON } from '../runner/constants.ts'
import { drawWith, seeded } from '../runner/seeded.ts'

const PARCELS = 12

/** Opens a store for random steps: pushes, polls, joins, deliveries and commands. They are the same in every run with the same seed. */
export async function openBusyStore(engine: Engine, place: string, seed: number) {
  let nowMs = NOON
  const clock = { now: () => nowMs, monotonic: () => nowMs - NOON }
  const options = { sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions }
  const writes = await openWriteSide(options, clock, strictLog)
  const random = seeded(seed)
  const { below } = drawWith(random)
  const observations = seededObservations(seed, PARCELS)
  await addEndpoint(writes, nowMs, { name: 'shop' })
  await addEndpoint(writes, nowMs, { name: 'archive', backfill: true })

  async function deliver(): Promise<void> {
    const round = { inFlight: {}, allowance: {}, claimsMax: 20, nowMs }
    const { claimed } = await writes.dispatchRound({ ...round, settled: [] })
    await writes.dispatchRound({ ...round, settled: claimed.map((delivery) => answered(delivery, random(), nowMs)) })
  }

  async function command(): Promise<void> {
    const parcel = below(PARCELS)
    const commands = [
      () => writes.watch({ identifier: trackingNumberOf(parcel), nowMs }),
      () => writes.unwatch({ identifier: trackingIdOf(parcel) }),
      () => writes.noteNotPollable(trackingIdOf(parcel)),
      () => writes.reprocess({ inboxId: 1 + below(40), nowMs }),
      () => writes.settleMissedPushes(nowMs),
      () => writes.recordOperatorEvent({ event: 'credentials_refused' }, nowMs),
      () => addEndpoint(writes, nowMs, { name: `new-${below(1_000_000)}`, from: 0 }),
      () => writes.replayFeed({ limit: 20, nowMs }),
      () => writes.rememberCarrier({ atMs: nowMs, days: [], pausedUntilMs: nowMs, tokenPausedUntilMs: null, refusal: null }),
    ]
    await commands[below(commands.length)]?.()
  }

  return {
    writes,
    async next(): Promise<void> {
      nowMs += MINUTE_MS
      const kind = random()
      if (kind < 0.5) await writes.record(Array.from({ length: 1 + below(8) }, () => observations.next(nowMs)))
      else if (kind < 0.55) await writes.record([observations.join(below(PARCELS), below(PARCELS), nowMs)])
      else if (kind < 0.8) await deliver()
      else await command()
    },
    close: () => writes.close(),
  }
}

function answered(delivery: ClaimedDelivery, chance: number, atMs: number): SettledAttempt {
  const { body: _body, previousSequence: _previous, ...rest } = delivery
  const kept = { durationMs: Math.floor(chance * 100), answerStart: chance < 0.5 ? new Uint8Array() : Buffer.from('no such order') }
  const result =
    chance < 0.8
      ? ({ kind: 'accepted', status: 200, ...kept } as const)
      : ({ kind: 'rejected', status: 422, retryAfterMs: null, ...kept } as const)
  return { ...rest, atMs, random: 0.5, result }
}
