import type { Config } from '../../config/config.ts'
import { createVault } from '../../ops/vault.ts'
import { readAddress, type StoreAddress, writeAddress } from '../storage/store-address.ts'

/** Names the purpose of the encryption. For the key of an endpoint, it is the id of the endpoint. */
const PURPOSE = 'moved-store'

function vaultOf(config: Config) {
  const [first, ...others] = config.secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
  if (first === undefined) return null
  return createVault({ list: () => [first, ...others], first: () => first })
}

/**
 * Encodes the address of the new store, which the old store keeps. The address of a database is encrypted, because it contains a password.
 * Null: the config names no key.
 */
export async function encodeMoveAddress(config: Config, to: StoreAddress): Promise<string | null> {
  if (to.engine === 'sqlite') return writeAddress(to)
  return (await vaultOf(config)?.seal(writeAddress(to), PURPOSE)) ?? null
}

/** Decodes an address that `encodeMoveAddress` has encoded; null: no key in the config opens it. */
export async function decodeMoveAddress(config: Config, address: string): Promise<StoreAddress | null> {
  const text = address.startsWith('sqlite:') ? address : await vaultOf(config)?.open(address, PURPOSE)
  return typeof text === 'string' ? readAddress(text) : null
}
