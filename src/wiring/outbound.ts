import type { Config } from '../config/config.ts'
import type { DeliverySender } from '../flow/delivery/ports.ts'
import { createEgressGuard } from '../outbound/egress-guard.ts'
import { createSender, type Sender } from '../outbound/sender.ts'
import type { systemClock } from '../runtime/system-clock.ts'

/** The way to the endpoints: the guard on where they may be, and the connections to them. */
export interface Outbound {
  /** Uses what the last config allows: it is looked up at every attempt. */
  readonly sender: DeliverySender
  /** Why nothing may be sent to a URL; null: it may. */
  refuseUrl(url: string): string | null
  /** Takes what another config allows; connections made under the one before end when what they carry has ended. */
  replace(next: Config): void
  /** Interrupts what is under way. */
  close(): Promise<void>
}

export interface OutboundPorts {
  /** The ports the relay itself listens on: never an endpoint's. */
  readonly ownPorts: () => readonly number[]
  readonly clock: typeof systemClock
}

export function openOutbound(config: Config, { ownPorts, clock }: OutboundPorts): Outbound {
  const open = ({ delivery: { allowNetworks, timeoutMs } }: Config) => {
    const guard = createEgressGuard({ allowNetworks, ownPorts })
    return { guard, sender: createSender({ guard, timeoutMs, clock }) }
  }
  let current = open(config)
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
    replace(next) {
      const retired = current.sender
      current = open(next)
      retiring.add(retired)
      void retired.retire().finally(() => retiring.delete(retired))
    },
    async close() {
      await Promise.all([current.sender, ...retiring].map((one) => one.close()))
    },
  }
}
