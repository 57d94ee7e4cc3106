import type { Config } from '../config/config.ts'
import type { AtRestKeys } from '../ops/vault.ts'
import { keyFileBeside } from '../store/sqlite/key-file.ts'

/** The keys that encrypt secrets in the store, as the config in effect says. */
export interface AtRest {
  readonly keys: AtRestKeys
  /** The name of the file with the key; null: the config names the keys. */
  readonly keyFile: () => string | null
  /** The keys as another config would have them. */
  readonly keysOf: (config: Config) => AtRestKeys
  /** Uses the keys of this config from now on. */
  readonly replace: (config: Config) => void
}

/**
 * Takes the keys from the config, or from a key file beside the store. A key file goes on decrypting when the config names keys, until everything is
 * re-encrypted.
 */
export function openAtRestKeys(config: Config, storePath: string): AtRest {
  const isFile = config.store.engine === 'sqlite'
  const file = keyFileBeside(storePath, config.store.engine === 'sqlite' ? config.store.path : storePath)
  let current = config

  function keysOf({ secrets }: Config): AtRestKeys {
    const named = secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
    const [first] = named
    if (first === undefined) return { list: () => listed(file.read()), first: () => file.readOrMake() }
    return { list: () => [...named, ...(isFile ? listed(readIfPossible(file)) : [])], first: () => first }
  }

  return {
    keys: { list: () => keysOf(current).list(), first: () => keysOf(current).first() },
    keyFile: () => (current.secrets.atRestKeys.length > 0 ? null : file.name),
    keysOf,
    replace(next) {
      current = next
    },
  }
}

function listed(key: Uint8Array | null): readonly Uint8Array[] {
  return key === null ? [] : [key]
}

/** A damaged file must not keep the keys of the config from being used. */
function readIfPossible(file: Pick<ReturnType<typeof keyFileBeside>, 'read'>): Uint8Array | null {
  try {
    return file.read()
  } catch {
    return null
  }
}
