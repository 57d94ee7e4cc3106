import type { StartTimer } from './deadline.ts'

/** An address gets this head start before the next is tried too, in milliseconds (RFC 8305, "Connection Attempt Delay"). */
export const STAGGER_MS = 250
/** The maximum of addresses that are tried per host. */
const ADDRESSES_MAX = 10

/** Starts one attempt to connect. `giveUp` ends it; afterwards it calls nothing. */
export type StartAttempt<Connection> = (
  address: string,
  callbacks: { readonly onConnected: (connection: Connection) => void; readonly onFailed: (error: Error) => void },
) => { giveUp(): void }

/**
 * Connects to the address of a host that answers first (RFC 8305). Each address gets a head start of `STAGGER_MS` over the next one. So an
 * address that drops packets costs a quarter of a second, and not the whole time limit. When one fails, the next starts at once. When one
 * connects, the others are given up. If all fail, the error is that of the last address.
 */
export function connectStaggered<Connection>(
  addresses: readonly string[],
  startAttempt: StartAttempt<Connection>,
  startTimer: StartTimer,
  onEnd: (...ended: [Error, null] | [null, Connection]) => void,
): void {
  const waiting = alternateFamilies(addresses).slice(0, ADDRESSES_MAX)
  const running = new Set<{ giveUp(): void }>()
  let cancelTimer = (): void => undefined
  let isOver = false

  function finish(...ended: [Error, null] | [null, Connection]): void {
    isOver = true
    cancelTimer()
    for (const attempt of running) attempt.giveUp()
    running.clear()
    onEnd(...ended)
  }

  function startNext(): void {
    cancelTimer()
    const address = waiting.shift()
    if (address === undefined) return
    if (waiting.length > 0) cancelTimer = startTimer(STAGGER_MS, startNext)
    const attempt = startAttempt(address, {
      onConnected(connection) {
        running.delete(attempt)
        if (!isOver) finish(null, connection)
      },
      onFailed(error) {
        running.delete(attempt)
        if (isOver) return
        if (waiting.length > 0) startNext()
        else if (running.size === 0) finish(error, null)
      },
    })
    running.add(attempt)
  }

  startNext()
}

/** Alternates IPv6 and IPv4, beginning with the family that the resolver puts first. One family may have no route at all. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isV6 = (address: string): boolean => address.includes(':')
  const first = addresses.filter((address) => isV6(address) === isV6(addresses[0] ?? ''))
  const second = addresses.filter((address) => !first.includes(address))
  return first.flatMap((address, index) => [address, ...second.slice(index, index + 1)]).concat(second.slice(first.length))
}
