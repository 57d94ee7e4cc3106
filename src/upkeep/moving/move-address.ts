import { readAddress, type StoreAddress, writeAddress } from '../../assembly/storage/store-address.ts'
import type { Config } from '../../core/config/config.ts'
import { createVault } from '../../core/ops/vault.ts'

/** What the encryption is for. The text can be decrypted only for the same purpose. */
const PURPOSE = 'moved-store'

function vaultOf(config: Pick<Config, 'secrets'>) {
  const [first, ...others] = config.secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
  if (first === undefined) return null
  return createVault({ list: () => [first, ...others], first: () => first })
}

/**
 * Encodes the address of the new store, for the old store to keep. The address of a database is encrypted, because it contains a password.
 * Null: the config names no key to encrypt with.
 */
export async function encodeMoveAddress(config: Pick<Config, 'secrets'>, to: StoreAddress): Promise<string | null> {
  if (to.engine === 'sqlite') return writeAddress(to)
  return (await vaultOf(config)?.seal(writeAddress(to), PURPOSE)) ?? null
}

/** Decodes an address that `encodeMoveAddress` has encoded; null: no key in the config can decrypt it. */
export async function decodeMoveAddress(config: Pick<Config, 'secrets'>, address: string): Promise<StoreAddress | null> {
  const text = address.startsWith('sqlite:') ? address : await vaultOf(config)?.open(address, PURPOSE)
  return typeof text === 'string' ? readAddress(text) : null
}
