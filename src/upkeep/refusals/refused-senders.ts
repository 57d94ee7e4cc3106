/** An address whose pushes were refused because their signatures did not match. Times are epoch milliseconds. */
export interface RefusedSender {
  readonly address: string
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** Remembers, until this process ends, some of the addresses that sent refused pushes. */
export interface RefusedSenders {
  add(address: string): void
  /** The address that was refused last comes first. */
  list(): readonly RefusedSender[]
}

/** An attacker may have any number of addresses, so only the addresses that were refused last are remembered. */
const SENDERS_MAX = 50

export function createRefusedSenders(clock: { now(): number }): RefusedSenders {
  const senders = new Map<string, RefusedSender>()
  return {
    add(address) {
      const lastAtMs = clock.now()
      const { count, firstAtMs } = senders.get(address) ?? { count: 0, firstAtMs: lastAtMs }
      // Move the address to the end, because the map is in the order of the last refusals.
      senders.delete(address)
      senders.set(address, { address, count: count + 1, firstAtMs, lastAtMs })
      const [oldest] = senders.keys()
      if (senders.size > SENDERS_MAX && oldest !== undefined) senders.delete(oldest)
    },
    list: () => [...senders.values()].reverse(),
  }
}
