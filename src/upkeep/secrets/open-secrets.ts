import type { Config } from '../../core/config/config.ts'
import { nameKey } from '../../core/ops/vault.ts'
import { SESSION_IDLE_MS } from '../../core/wiring/history.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createManageSecrets, type ManageSecrets } from './manage-secrets.ts'
import { countSealed, resealEndpoints } from './reseal-endpoints.ts'

type Parts = Pick<Relay, 'reads' | 'write' | 'clock' | 'replicas' | 'vault' | 'atRest' | 'keyring' | 'tombstoneKey'>

/** Assembles the part with which operators replace the relay's own keys. */
export function openSecrets(config: Config, { reads, write, clock, replicas, vault, atRest, keyring, tombstoneKey }: Parts): ManageSecrets {
  return createManageSecrets(
    {
      write,
      clock,
      async reseal() {
        const endpoints = await resealEndpoints({ vault, reads, write })
        const tombstones = await tombstoneKey.reseal()
        return {
          resealed: endpoints.resealed + (tombstones === 'resealed' ? 1 : 0),
          upToDate: endpoints.upToDate + (tombstones === 'upToDate' ? 1 : 0),
          unreadable: [...endpoints.unreadable, ...(tombstones === 'unreadable' ? ['the key of erased parcels'] : [])],
        }
      },
      countSealed: () => countSealed({ vault, reads, tombstoneKey: tombstoneKey.sealed }),
      firstKey: () => nameKey(atRest.keys.first()),
      listReplicas: replicas.list,
      useTokenKeys: keyring.replace,
    },
    { tokenLifetimeMs: Math.max(config.token.lifetimeMs, SESSION_IDLE_MS) },
  )
}
