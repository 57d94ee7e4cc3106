import type { Config, StoreSettings } from '../config/config.ts'
import { describeFailure } from '../domain/system-reason.ts'
import type { AtRestKeys } from '../ops/vault.ts'
import { keyFileBeside, readKeyIfPossible } from '../store/sqlite/whole-file.ts'

/** The keys that encrypt secrets in the store. */
export type AtRest = ReturnType<typeof openAtRestKeys>

/**
 * Takes the keys from the config or, if it names none, from a key file beside the store, which the relay makes. If a config begins to name
 * keys, the key file beside a SQLite store still decrypts what was encrypted earlier.
 */
export function openAtRestKeys(config: StoreSettings, storePath: string) {
  const isFile = config.store.engine === 'sqlite'
  const file = keyFileBeside(storePath)
  let current: StoreSettings = config

  /** Returns the keys that another config would use. */
  function keysOf({ secrets }: StoreSettings): AtRestKeys {
    const named = secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
    const [first] = named
    if (first === undefined) return { list: () => listed(file.read()), first: () => file.readOrMake() }
    // A missing or damaged key file is no error here, because the config names other keys.
    return { list: () => [...named, ...(isFile ? listed(readKeyIfPossible(file.path)) : [])], first: () => first }
  }

  return {
    keys: { list: () => keysOf(current).list(), first: () => keysOf(current).first() },
    /** The path of the key file, which may not exist. */
    keyFilePath: file.path,
    /** Returns the name of the key file; null: the config names the keys, so no file is needed. */
    keyFile: (): string | null => (current.secrets.atRestKeys.length > 0 ? null : file.name),
    /** Says why the key file cannot be used; null: it can, or it is not there yet, or the config names the keys. */
    fault(): string | null {
      if (current.secrets.atRestKeys.length > 0) return null
      try {
        file.read()
        return null
      } catch (error) {
        return describeFailure(error)
      }
    },
    keysOf,
    /** Uses the keys of this config from now on. */
    replace(next: Config) {
      current = next
    },
  }
}

function listed(key: Uint8Array | null): readonly Uint8Array[] {
  return key === null ? [] : [key]
}
