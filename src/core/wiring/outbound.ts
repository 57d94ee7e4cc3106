import { isIP } from 'node:net'
import type { Config } from '../config/config.ts'
import type { Route } from '../domain/delivery/delivery-request.ts'
import type { DeliverySender } from '../flow/ports.ts'
import { createEgressGuard } from '../outbound/egress-guard.ts'
import { createSender, type Sender } from '../outbound/sender.ts'
import { type Destination, tryConnection } from '../outbound/try-connection.ts'
import type { Relay } from './relay.ts'

type Parts = Pick<Relay, 'ownPorts' | 'clock' | 'replicas'>

/** Opens connections to endpoints, and the guard that checks the addresses of endpoints. */
export function openOutbound(config: Config, { ownPorts, clock, replicas }: Parts) {
  const open = (next: Config) => {
    const { timeoutMs } = next.delivery
    const { guard, operatorGuard } = openGuards(next, ownPorts)
    const [sender, toOperator] = [guard, operatorGuard].map((one) =>
      createSender({ guard: one, timeoutMs, clock, mayPost: () => !replicas.signal().aborted }),
    )
    if (sender === undefined || toOperator === undefined) throw new Error('a sender is missing')
    return {
      guard,
      operatorGuard,
      senders: [sender, toOperator],
      to: (route?: Route) => (route?.isOperator === true ? toOperator : sender),
    }
  }
  let current = open(config)
  let settings = config
  const retiring = new Set<Sender>()
  return {
    /** The guard checks each attempt by the latest config. */
    sender: {
      send: (request) => current.to(request.route).send(request),
      post: (request, onEnd) => current.to(request.route).post(request, onEnd),
    } satisfies DeliverySender,
    /** Returns why a URL is not allowed for an endpoint; null: it is allowed. */
    refuseUrl(url: string) {
      const verdict = current.guard.checkUrl(url)
      return verdict.ok ? null : verdict.reason
    },
    /** Connects as for a delivery, but sends nothing. Resolves with the reason if that fails; null: the connection was made. */
    tryConnection(to: Destination) {
      const guard = to.route.isOperator === true ? current.operatorGuard : current.guard
      return tryConnection(to, { guard, timeoutMs: settings.delivery.timeoutMs })
    },
    /** Interrupts the running attempts. New attempts may begin. */
    interrupt() {
      const interrupted = current.senders
      current = open(settings)
      for (const one of [...interrupted, ...retiring]) void one.close()
    },
    /** Applies another config. Connections that were made under the previous config end after their current attempt. */
    replace(next: Config) {
      const retired = current.senders
      settings = next
      current = open(next)
      for (const one of retired) {
        retiring.add(one)
        void one.retire().finally(() => retiring.delete(one))
      }
    },
    /** Interrupts the running attempts, and allows no new ones. */
    async close() {
      await Promise.all([...current.senders, ...retiring].map((one) => one.close()))
    },
  }
}

/** Opens the guard for endpoints, and the one for the operator's address. */
export function openGuards({ delivery: { allowNetworks }, operator }: Config, ownPorts: Relay['ownPorts']) {
  return {
    guard: createEgressGuard({ allowNetworks, ownPorts }),
    operatorGuard: createEgressGuard({ allowNetworks: [...allowNetworks, ...hostOf(operator)], ownPorts }),
  }
}

/** Returns the host of `operator.url`. It is allowed even in a private network, because the config names it. */
function hostOf(operator: Config['operator']): readonly string[] {
  if (operator === null) return []
  const url = new URL(operator.url.reveal())
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return [isIP(hostname) === 6 ? `[${hostname}]:${portOf(url)}` : isIP(hostname) === 4 ? `${hostname}:${portOf(url)}` : hostname]
}

function portOf({ port, protocol }: URL): string {
  return port === '' ? (protocol === 'https:' ? '443' : '80') : port
}
