import { z } from 'zod'
import { type AddressRefusal, parseAllowed, parseNetwork, refuseNetwork } from '../outbound/address-rules.ts'

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/
const error = 'must be a network such as 10.0.0.0/8, an address, a host name, or an address with its port such as 127.0.0.1:9000'

const NEVER: Readonly<Partial<Record<AddressRefusal, string>>> = {
  link_local: 'is link-local, the range of cloud metadata services',
  metadata: 'is a cloud metadata service, which hands out credentials',
  special: 'is not the address of a host (it is unspecified, broadcast, multicast, or embeds another address)',
}

/** The schema of an entry of `delivery.allowNetworks`. It rejects an entry that names only addresses to which the relay never sends. */
export const allowedTarget = z
  .string({ error })
  .meta({ $comment: 'network, address, address:port or host name' })
  .superRefine((value, context) => {
    const allowed = parseAllowed(value)
    const isNamed = allowed.kind === 'host' && NAME.test(value) && value.length <= 253 && !/^[\d.]+$/.test(value)
    if (allowed.kind === 'host' && !isNamed) {
      context.addIssue({ code: 'custom', message: error })
      return
    }
    if (allowed.kind === 'origin' && (allowed.port < 1 || allowed.port > 65_535)) {
      context.addIssue({ code: 'custom', message: 'must have a port from 1 to 65535' })
      return
    }
    const network = allowed.kind === 'network' ? allowed.network : allowed.kind === 'origin' ? parseNetwork(allowed.address) : null
    const refusal = network === null ? null : refuseNetwork(network)
    const reason = refusal === null ? undefined : NEVER[refusal]
    if (reason !== undefined) context.addIssue({ code: 'custom', message: `${reason}: the relay never sends there, so remove it` })
  })
