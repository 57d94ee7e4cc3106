import type { Config } from '../config/config.ts'
import type { Membership } from '../flow/admin/replicas/membership.ts'
import type { DeliverySender } from '../flow/delivery/ports.ts'
import type { Clock } from '../flow/ports.ts'
import { createEgressGuard } from '../outbound/egress-guard.ts'
import { createSender, type Sender } from '../outbound/sender.ts'
import { type Destination, type NoConnection, tryConnection } from '../outbound/try-connection.ts'

/** The guard on endpoints' addresses, and the connections to them. */
export interface Outbound {
  /** Checks every attempt against the latest config. */
  readonly sender: DeliverySender
  /** Why a URL is refused; null: it is allowed. */
  refuseUrl(url: string): string | null
  /** Connects as a delivery would, but sends nothing. Null: the connection was made. */
  tryConnection(to: Destination): Promise<NoConnection | null>
  /** Applies another config. Connections that were made under the previous one end after their present attempt. */
  replace(next: Config): void
  /** Interrupts the running attempts. Later ones may start. */
  interrupt(): void
  /** Interrupts the running attempts, and allows no more. */
  close(): Promise<void>
}

export interface OutboundPorts {
  /** The ports on which the relay itself listens. No endpoint may have them. */
  readonly ownPorts: () => readonly number[]
  readonly clock: Clock
  readonly replicas: Pick<Membership, 'signal'>
}

export function openOutbound(config: Config, { ownPorts, clock, replicas }: OutboundPorts): Outbound {
  const open = ({ delivery: { allowNetworks, timeoutMs } }: Config) => {
    const guard = createEgressGuard({ allowNetworks, ownPorts })
    return { guard, sender: createSender({ guard, timeoutMs, clock, mayPost: () => !replicas.signal().aborted }) }
  }
  let current = open(config)
  let settings = config
  const retiring = new Set<Sender>()
  return {
    sender: {
      send: (request) => current.sender.send(request),
      post: (request, onEnd) => current.sender.post(request, onEnd),
    },
    refuseUrl(url) {
      const verdict = current.guard.checkUrl(url)
      return verdict.ok ? null : verdict.reason
    },
    tryConnection: (to) => tryConnection(to, { guard: current.guard, timeoutMs: settings.delivery.timeoutMs }),
    interrupt() {
      const interrupted = current.sender
      current = open(settings)
      for (const one of [interrupted, ...retiring]) void one.close()
    },
    replace(next) {
      const retired = current.sender
      settings = next
      current = open(next)
      retiring.add(retired)
      void retired.retire().finally(() => retiring.delete(retired))
    },
    async close() {
      await Promise.all([current.sender, ...retiring].map((one) => one.close()))
    },
  }
}
