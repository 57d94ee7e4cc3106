import type { Config } from '../config/config.ts'
import type { TombstoneKeyKeeper } from '../flow/admin/erasure/tombstone-key.ts'
import { createManageSecrets, type ManageSecrets } from '../flow/admin/manage-secrets.ts'
import type { TokenKeyring } from '../flow/admin/tokens/token-keyring.ts'
import { countSealed, resealEndpoints } from '../flow/delivery/reseal-endpoints.ts'
import type { Vault } from '../flow/delivery/vault.ts'
import type { Log } from '../flow/ports.ts'
import { nameKey } from '../ops/vault.ts'
import { startRepeating } from '../runtime/repeating.ts'
import type { AtRest } from './at-rest-keys.ts'
import type { Closing } from './closing.ts'
import { SESSION_IDLE_MS } from './history.ts'
import type { Storage } from './storage/opened-storage.ts'

/** How long it may take until a replica notices that another one has made all tokens invalid. */
const LOOK_AT_TOKEN_KEYS_MS = 10_000

export interface SecretsPorts {
  readonly storage: Pick<Storage, 'reads' | 'write' | 'clock' | 'replicas'>
  readonly vault: Vault
  readonly atRest: Pick<AtRest, 'keys'>
  readonly keyring: TokenKeyring
  readonly tombstoneKey: TombstoneKeyKeeper
  readonly closing: Closing
  readonly log: Pick<Log, 'debug'>
}

/** Assembles the part with which operators replace the relay's own keys. */
export function openSecrets(config: Config, { storage, vault, atRest, keyring, tombstoneKey, closing, log }: SecretsPorts): ManageSecrets {
  const { reads, write, clock, replicas } = storage
  if (config.store.engine === 'postgres') {
    const looking = startRepeating(
      () => keyring.refresh().catch((err: unknown) => log.debug({ err }, 'cannot read the keys of tokens; the relay tries again')),
      LOOK_AT_TOKEN_KEYS_MS,
    )
    closing.add(() => looking.stop())
  }
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
