import { onTestFinished } from 'vitest'
import { openWriteSide, type WriteSideOptions } from '../../../src/assembly/open-write-side.ts'
import type { ClaimedDelivery, DispatchRoundReport, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { EndpointSettings, EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { type PushFields, pushBody } from '../history/builders.ts'
import { strictLog } from '../history/observed.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { newPlace } from '../store/engines.ts'
import { incomingPush } from '../store/write-side.ts'
import { addEndpoint } from './stored-endpoint.ts'

/** An attempt, from its claim until its settlement. */
export interface WorldAttempt {
  readonly delivery: ClaimedDelivery
  readonly beganMs: number
  readonly endsMs: number
  readonly status: number
}

export interface DeliveryWorldOptions {
  /** Returns the status with which the endpoint answers an attempt that began at `beganMs`. */
  readonly statusOf: (delivery: ClaimedDelivery, beganMs: number) => number
  readonly latencyMs?: () => number
  readonly settings?: Partial<EndpointSettings>
  readonly deliver?: Partial<WriteSideOptions['deliver']>
  readonly onAttempt?: (attempt: WorldAttempt, report: DispatchRoundReport) => void
  readonly onEnd?: (attempt: WorldAttempt) => void
}

/** Opens a real store with one endpoint, in simulated time. The endpoint answers each attempt after `latencyMs`. */
export async function openDeliveryWorld(engine: Engine, startMs: number, options: DeliveryWorldOptions) {
  const { statusOf, latencyMs = () => 20, onAttempt, onEnd } = options
  const path = await newPlace(engine)
  let nowMs = startMs
  let runBeganMs = startMs
  const clock = { now: () => nowMs, monotonic: () => nowMs - runBeganMs }
  const open = () =>
    openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: { ...deliverOptions, ...options.deliver } }, clock, strictLog)
  let writes = await open()
  const reads = engine.openReadStore(path)
  onTestFinished(async () => {
    await reads.close()
    await writes.close()
  })
  const { id } = await addEndpoint(writes, startMs, { name: 'shop', ...options.settings })
  const attempts: WorldAttempt[] = []
  let underWay: readonly WorldAttempt[] = []
  let nextAtMs: number | null = startMs

  async function turn(): Promise<void> {
    const ended = underWay.filter(({ endsMs }) => endsMs <= nowMs)
    underWay = underWay.filter(({ endsMs }) => endsMs > nowMs)
    const report = await writes.dispatchRound({
      settled: ended.map(settledAttempt),
      inFlight: { [id]: underWay.map(({ delivery }) => delivery.deliveryId) },
      allowance: {},
      claimsMax: 100,
      nowMs,
    })
    nextAtMs = report.nextAtMs
    for (const attempt of ended) onEnd?.(attempt)
    for (const delivery of report.claimed) {
      const attempt = { delivery, beganMs: nowMs, endsMs: nowMs + latencyMs(), status: statusOf(delivery, nowMs) }
      attempts.push(attempt)
      onAttempt?.(attempt, report)
      underWay = [...underWay, attempt]
    }
  }

  return {
    id,
    path,
    attempts,
    reads,
    writes: () => writes,
    now: () => nowMs,
    underWay: () => underWay,
    push: (fields: PushFields) => writes.record([incomingPush(pushBody(fields), nowMs)]),
    /** Simulates event by event until `untilMs`. */
    async run(untilMs: number): Promise<void> {
      await turn()
      for (;;) {
        const times = [...underWay.map(({ endsMs }) => endsMs), ...(nextAtMs === null ? [] : [Math.max(nextAtMs, nowMs + 1)])]
        const atMs = Math.min(...times)
        if (atMs > untilMs) break
        nowMs = atMs
        await turn()
      }
      nowMs = untilMs
    },
    /** Kills the relay and starts it again. Attempts in flight arrive, but their results are lost. */
    async kill(whileDown?: (path: string) => Promise<unknown>): Promise<void> {
      underWay = []
      await writes.close()
      await whileDown?.(path)
      runBeganMs = nowMs
      writes = await open()
    },
    endpoint: async (): Promise<EndpointState> => {
      const state = (await reads.listEndpoints()).find(({ endpoint }) => endpoint.id === id)
      if (state === undefined) throw new Error('the endpoint is gone')
      return state
    },
  }
}

function settledAttempt({ delivery, beganMs, status }: WorldAttempt): SettledAttempt {
  const { body: _body, previousSequence: _previous, ...rest } = delivery
  const kept = { durationMs: 1, answerStart: new Uint8Array() }
  const result =
    status < 300 ? ({ kind: 'accepted', status, ...kept } as const) : ({ kind: 'rejected', status, retryAfterMs: null, ...kept } as const)
  return { ...rest, result, atMs: beganMs, random: 0.5 }
}
