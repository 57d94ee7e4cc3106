import type { Config } from '../../config/config.ts'
import { createVault } from '../../ops/vault.ts'
import { readPlace, type StorePlace, writePlace } from '../storage/store-places.ts'

/** What the address is encrypted for, in place of an endpoint. */
const PURPOSE = 'moved-store'

function vaultOf(config: Config) {
  const [first, ...others] = config.secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
  if (first === undefined) return null
  return createVault({ list: () => [first, ...others], first: () => first })
}

/** The address of a store as another one keeps it: that of a database is encrypted, because it holds a password. Null: the config names no key. */
export async function encodeMoveAddress(config: Config, place: StorePlace): Promise<string | null> {
  if (place.engine === 'sqlite') return writePlace(place)
  return (await vaultOf(config)?.seal(writePlace(place), PURPOSE)) ?? null
}

/** Null: none of the keys in the config opens it. */
export async function decodeMoveAddress(config: Config, address: string): Promise<StorePlace | null> {
  const text = address.startsWith('sqlite:') ? address : await vaultOf(config)?.open(address, PURPOSE)
  return typeof text === 'string' ? readPlace(text) : null
}
