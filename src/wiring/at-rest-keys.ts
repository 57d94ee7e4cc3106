import type { Config } from '../config/config.ts'
import type { AtRestKeys } from '../ops/vault.ts'
import { keyFileBeside } from '../store/sqlite/key-file.ts'

/** The keys that encrypt secrets in the store, according to the present config. */
export interface AtRest {
  readonly keys: AtRestKeys
  /** The file for the key that the relay makes. It may not exist. */
  readonly keyFilePath: string
  /** The name of the file with the key; null: the config gives the keys. */
  readonly keyFile: () => string | null
  /** The keys under another config. */
  readonly keysOf: (config: Config) => AtRestKeys
  /** Uses the keys of this config from now on. */
  readonly replace: (config: Config) => void
}

/**
 * Takes the keys from the config, or from a key file beside the store. If a config begins to give keys, the key file still decrypts until
 * everything is encrypted again.
 */
export function openAtRestKeys(config: Config, storePath: string): AtRest {
  const isFile = config.store.engine === 'sqlite'
  const file = keyFileBeside(storePath)
  let current = config

  function keysOf({ secrets }: Config): AtRestKeys {
    const named = secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
    const [first] = named
    if (first === undefined) return { list: () => listed(file.read()), first: () => file.readOrMake() }
    return { list: () => [...named, ...(isFile ? listed(readIfPossible(file)) : [])], first: () => first }
  }

  return {
    keys: { list: () => keysOf(current).list(), first: () => keysOf(current).first() },
    keyFilePath: file.path,
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

/** Reads the key file; null: there is none, or it is damaged. The keys of the config must work without it. */
function readIfPossible(file: Pick<ReturnType<typeof keyFileBeside>, 'read'>): Uint8Array | null {
  try {
    return file.read()
  } catch {
    return null
  }
}
