import { type TokenKeys, verifyingKeys } from '../../../domain/admin/token-keys.ts'
import { digest } from '../../../domain/digest.ts'
import type { Relay, Writes } from '../../relay.ts'

/** A token contains the name of the key that signed it. */
export interface TokenKey {
  readonly name: string
  readonly key: Uint8Array
}

/** The keys that sign tokens, as far as this process knows. Another replica may replace them. */
export interface TokenKeyring {
  /** The key that signs new tokens. */
  readonly current: () => TokenKey
  /** The key of this name, if it verifies tokens now; null: this process knows no such key. */
  readonly find: (name: string) => TokenKey | null
  /** Like `find`, but reads the store for an unknown name. All callers together read at most once a second. */
  readonly seek: (name: string) => Promise<TokenKey | null>
  /** Reads the keys from the store again. Rejects if the store does not answer. */
  readonly refresh: () => Promise<void>
  readonly replace: (keys: TokenKeys) => void
}

export interface TokenKeyringPorts extends Pick<Relay, 'clock'>, Writes<'tokenKeys'> {
  readonly pause: (ms: number) => Promise<void>
  /** Whether other replicas may replace the keys; absent: yes. */
  readonly isShared?: boolean
}

const SEEK_EVERY_MS = 1000

export function createTokenKeyring(keys: TokenKeys, { write, clock, pause, isShared = true }: TokenKeyringPorts): TokenKeyring {
  let known = keys
  let current = named(keys.current)
  let sought = Number.NEGATIVE_INFINITY
  let seeking: Promise<void> | null = null

  function replace(next: TokenKeys): void {
    known = next
    current = named(next.current)
  }

  async function refresh(): Promise<void> {
    replace(await write.tokenKeys())
  }

  function find(name: string): TokenKey | null {
    if (name === current.name) return current
    return (
      verifyingKeys(known, clock.now())
        .map(named)
        .find((key) => key.name === name) ?? null
    )
  }

  /** Reads the store at most once a second, because anybody can send tokens with made-up names. */
  function refreshInTurn(): Promise<void> {
    const restMs = sought + SEEK_EVERY_MS - clock.monotonic()
    seeking ??= (restMs > 0 ? pause(restMs) : Promise.resolve())
      .then(() => {
        sought = clock.monotonic()
        return refresh()
      })
      .finally(() => {
        seeking = null
      })
    return seeking
  }

  return {
    current: () => current,
    find,
    async seek(name) {
      const found = find(name)
      if (found !== null || !isShared) return found
      await refreshInTurn()
      return find(name)
    },
    refresh,
    replace,
  }
}

/** Names a key by its hash. The hash reveals nothing, because keys are random. */
function named(key: Uint8Array): TokenKey {
  return { key, name: digest(key).slice(0, 11) }
}
