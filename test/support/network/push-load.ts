import { setTimeout as rest } from 'node:timers/promises'
import { pushBody } from '../history/builders.ts'
import { push } from '../relay/relay.ts'
import { byForm } from '../runner/long-form.ts'

const REST_MS = byForm(20, 0)

export interface Answered {
  readonly body: string
  /** Null: the connection broke or was refused before the response. */
  readonly status: number | null
  readonly retryAfter: string | null
  /** When the request started, by `performance.now()`. */
  readonly begunAtMs: number
  readonly tookMs: number
}

export interface Load {
  inFlight(): number
  answered(): number
  answers(): readonly Answered[]
  untilAnswered(count: number): Promise<void>
  /** Sends no more requests. Resolves with the outcomes of all requests. */
  stop(): Promise<readonly Answered[]>
}

/** Each body is a new entry of one of `parcels` parcels. */
export function distinctPushes(parcels: number) {
  let made = 0
  const startMs = Date.now() - 86_400_000
  const placeOf = (body: string): string => /"location":"([^"]*)"/.exec(body)?.[1] ?? ''
  const idOf = (body: string): string => /"trackingIds":\["(\d+)"\]/.exec(body)?.[1] ?? ''
  return {
    next: (): string => {
      made += 1
      const eventTime = new Date(startMs + made * 1000 + (made % 1000)).toISOString()
      return pushBody({ eventTime, location: `Place ${made}.`, trackingIds: [`88000${made % parcels}`] }).toString()
    },
    /** Returns a text that a history contains only if it contains the entry of this body. */
    entryOf: (body: string): string => `"location":"${placeOf(body)}"`,
    parcels: (bodies: readonly string[]): readonly string[] => [...new Set(bodies.map(idOf))],
  }
}

export interface LoadOptions {
  readonly restMs?: number
  readonly isPatient?: boolean
}

/**
 * Pushes in a closed loop, `atOnce` at a time, until stopped or until the relay is gone. `restMs`: a rest after each push, by default only in
 * `npm test`, which does not test load. `isPatient`: the loop continues while the relay is gone.
 */
export function startLoad(
  publicUrl: string,
  atOnce: number,
  next: () => string,
  { restMs = REST_MS, isPatient = false }: LoadOptions = {},
): Load {
  const answered: Answered[] = []
  const waiting = new Set<{ readonly count: number; readonly resolve: () => void }>()
  let begun = 0
  let stopped = false

  const note = (answer: Answered): void => {
    answered.push(answer)
    for (const one of waiting) if (answered.length >= one.count) one.resolve()
  }
  const pushOn = async (): Promise<void> => {
    while (!stopped) {
      const body = next()
      begun += 1
      const begunAtMs = performance.now()
      const { status, retryAfter } = await push(publicUrl, body).then(
        async (response) => {
          await response.arrayBuffer()
          return { status: response.status, retryAfter: response.headers.get('retry-after') }
        },
        () => ({ status: null, retryAfter: null }),
      )
      note({ body, status, retryAfter, begunAtMs, tookMs: performance.now() - begunAtMs })
      // No answer means that the relay is gone.
      if (status === null && !isPatient) return
      if (restMs > 0) await rest(restMs)
    }
  }
  const lanes = Array.from({ length: atOnce }, pushOn)
  return {
    inFlight: () => begun - answered.length,
    answered: () => answered.length,
    answers: () => [...answered],
    untilAnswered: (count) =>
      new Promise((resolve) => {
        if (answered.length >= count) resolve()
        else waiting.add({ count, resolve })
      }),
    stop: async () => {
      stopped = true
      await Promise.all(lanes)
      return answered
    },
  }
}
