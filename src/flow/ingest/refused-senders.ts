/** An address whose pushes were refused because their signature did not match. Anybody can send such. Times are epoch milliseconds. */
export interface RefusedSender {
  readonly address: string
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** Remembers who sent pushes that were refused: a sample in memory, of this process, since it started. */
export interface RefusedSenders {
  add(address: string): void
  /** The last one first. */
  list(): readonly RefusedSender[]
}

/** How many addresses are remembered, however many an attacker has: the ones that were refused last. */
const SENDERS_MAX = 50

export function createRefusedSenders(clock: { now(): number }): RefusedSenders {
  const senders = new Map<string, RefusedSender>()
  return {
    add(address) {
      const lastAtMs = clock.now()
      const { count, firstAtMs } = senders.get(address) ?? { count: 0, firstAtMs: lastAtMs }
      // Put at the end again: the map is in the order of the last refusals.
      senders.delete(address)
      senders.set(address, { address, count: count + 1, firstAtMs, lastAtMs })
      const [oldest] = senders.keys()
      if (senders.size > SENDERS_MAX && oldest !== undefined) senders.delete(oldest)
    },
    list: () => [...senders.values()].reverse(),
  }
}
