/** A resend that is under way: events that an endpoint never received are being queued for it. */
interface Resending {
  readonly endpointId: string
  /** How many events it has queued so far. */
  readonly queued: number
}

/** The resends that this process makes while somebody waits for the result. Larger resends are jobs, which are in the store. */
export interface Resends {
  /** Notes that a resend begins. Call `queued` after each batch, and `end` when the resend has ended or failed. */
  begin(endpointId: string): { queued(count: number): void; end(): void }
  running(): readonly Resending[]
  /** How many resends have ended since the start of the process. */
  ended(): number
}

export function createResends(): Resends {
  const running = new Map<symbol, Resending>()
  let ended = 0
  return {
    begin(endpointId) {
      const key = Symbol(endpointId)
      let queued = 0
      running.set(key, { endpointId, queued })
      return {
        queued(count) {
          queued += count
          running.set(key, { endpointId, queued })
        },
        end() {
          if (running.delete(key)) ended += 1
        },
      }
    },
    running: () => [...running.values()],
    ended: () => ended,
  }
}
