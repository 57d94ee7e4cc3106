import type { StartTimer } from './deadline.ts'

/** How long one address has to answer before the next is tried too (RFC 8305, "Connection Attempt Delay"). */
export const STAGGER_MS = 250
const ADDRESSES_MAX = 10

/** Starts one attempt to connect. `giveUp` ends the attempt, and no callback is called afterwards. */
export type StartAttempt<Connection> = (
  address: string,
  callbacks: { readonly onConnected: (connection: Connection) => void; readonly onFailed: (error: Error) => void },
) => { giveUp(): void }

/**
 * Tries the addresses of a host, and uses the first that answers (RFC 8305). Each attempt starts `STAGGER_MS` after the previous one, or as
 * soon as any attempt fails. So an address that drops packets costs a quarter of a second, and not the whole time limit. If all attempts fail,
 * the callback gets the last error.
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

/** Sorts addresses so that IPv6 and IPv4 alternate, because one of the two may have no route. The resolver's first address stays first. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isV6 = (address: string): boolean => address.includes(':')
  const first = addresses.filter((address) => isV6(address) === isV6(addresses[0] ?? ''))
  const second = addresses.filter((address) => !first.includes(address))
  return first.flatMap((address, index) => [address, ...second.slice(index, index + 1)]).concat(second.slice(first.length))
}
