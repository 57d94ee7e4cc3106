import type { RemoteCarrier } from '../carrier/carrier-client.ts'
import type { Config } from '../config/config.ts'
import type { Authenticate } from '../flow/admin/authenticate.ts'
import type { Log } from '../flow/ports.ts'
import { renewAuthority } from './carrier.ts'
import type { Certificates } from './certificates.ts'
import type { Delivery } from './delivery.ts'
import { appsOf } from './history.ts'
import type { ReceiveSide } from './hosting/receive-side.ts'
import type { Listening } from './listen.ts'

export interface ReloadPorts {
  readonly delivery: Pick<Delivery, 'reload'>
  readonly authenticate: Pick<Authenticate, 'replaceApps'>
  readonly carrier: RemoteCarrier
  readonly certificates: Pick<Certificates, 'inUse' | 'renew'>
  readonly receiver: Pick<ReceiveSide, 'replaceKeys' | 'renewTls'>
  readonly publicServer: Pick<Listening, 'tlsUntilMs'>
  readonly internalServer: Pick<Listening, 'tlsUntilMs' | 'renewTls'>
  readonly log: Log
  /** Called with the config that is in effect from then on. */
  readonly applied: (config: Config) => void
}

/** What `RunningRelay.reload` does. */
export function createReload(config: Config, ports: ReloadPorts): (next: Config) => Promise<void> {
  const { delivery, authenticate, certificates, receiver, publicServer, internalServer, applied } = ports
  let current = config
  certificates.inUse('public', publicServer.tlsUntilMs)
  certificates.inUse('internal', internalServer.tlsUntilMs)
  return async (next) => {
    // First: what ends access waits for no store.
    authenticate.replaceApps(appsOf(next))
    try {
      await delivery.reload(next)
    } catch (error) {
      authenticate.replaceApps(appsOf(current))
      throw error
    }
    current = next
    applied(next)
    await receiver.replaceKeys(next.webhook.sharedKeys.map((key) => key.reveal()))
    renewAuthority(next, ports)
    await certificates.renew(next, { public: receiver.renewTls, internal: internalServer.renewTls })
  }
}
