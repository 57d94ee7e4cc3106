import type { Config } from '../config/config.ts'
import type { AtRestKeys } from '../ops/vault.ts'
import { keyFileBeside } from '../store/sqlite/key-file.ts'

/** The keys that encrypt endpoint keys: from the config, or from a key file beside the store, whose name is then returned too. */
export function atRestKeys(config: Config, storePath: string): { readonly keys: AtRestKeys; readonly keyFile: string | null } {
  const [first, ...others] = config.secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
  if (first !== undefined) return { keys: { list: () => [first, ...others], first: () => first }, keyFile: null }
  const file = keyFileBeside(storePath, config.store.engine === 'sqlite' ? config.store.path : storePath)
  return { keys: { list: () => [file.read()].filter((key) => key !== null), first: () => file.readOrMake() }, keyFile: file.name }
}
