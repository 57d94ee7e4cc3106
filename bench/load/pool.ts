import { openConnection } from './connection.ts'
import type { Tally } from './tally.ts'

/** A pool of connections to one server. */
export interface Pool {
  readonly size: number
  /** Calls `onIdle` once for each connection, and again after each response has been counted in the tally. */
  start(tally: Tally, onIdle: (on: number) => void): void
  /** Sends a request on an idle connection. Its latency counts from `sinceMs`. */
  send(on: number, request: Buffer, sinceMs: number): void
  inFlight(): number
  /** Resolves when the server closes a connection. */
  readonly broken: Promise<void>
  close(): void
}

export async function openPool(port: number, size: number): Promise<Pool> {
  const broken = Promise.withResolvers<void>()
  const since = new Float64Array(size)
  let inFlight = 0
  let tally: Tally | null = null
  let idle: (on: number) => void = () => {}
  const connections = await Promise.all(
    Array.from({ length: size }, (_, on) =>
      openConnection(port, {
        onAnswer(status, bodyBytes) {
          inFlight -= 1
          tally?.answered(status, bodyBytes, since[on] ?? 0)
          idle(on)
        },
        onBroken() {
          tally?.failed('broken', 1)
          broken.resolve()
        },
      }),
    ),
  )
  return {
    size,
    start(tells, onIdle) {
      tally = tells
      idle = onIdle
      for (let on = 0; on < size; on++) onIdle(on)
    },
    send(on, request, sinceMs) {
      since[on] = sinceMs
      inFlight += 1
      connections[on]?.send(request)
    },
    inFlight: () => inFlight,
    broken: broken.promise,
    close() {
      for (const connection of connections) connection.close()
    },
  }
}
