import { resolve } from 'node:path'
import type { Config } from '../../core/config/config.ts'
import { createSecret } from '../../core/config/secret.ts'
import { isPostgresUrl } from '../../core/config/values.ts'
import type { ServerStores } from '../server-stores.ts'
import { sqliteMoves } from './sqlite-moves.ts'
import type { StoreMoves } from './store-moves.rows.ts'

/** The address of a store: a path for SQLite, a URL for PostgreSQL. */
export interface StoreAddress {
  readonly engine: Config['store']['engine']
  readonly address: string
}

export function addressOf({ store }: Pick<Config, 'store'>): StoreAddress {
  return store.engine === 'sqlite' ? { engine: store.engine, address: store.path } : { engine: store.engine, address: store.url.reveal() }
}

export function settingOf({ engine, address }: StoreAddress): Config['store'] {
  return engine === 'sqlite' ? { engine, path: address } : { engine, url: createSecret(address) }
}

/** Parses an address in the form of the setting `store`; null: the text has another form. */
export function readAddress(text: string): StoreAddress | null {
  if (isPostgresUrl(text)) return { engine: 'postgres', address: text }
  return /^sqlite:\S.*$/.test(text) ? { engine: 'sqlite', address: resolve(text.slice('sqlite:'.length)) } : null
}

/** Formats an address for `readAddress`. A path becomes absolute, so that it does not depend on the working directory. */
export function writeAddress({ engine, address }: StoreAddress): string {
  return engine === 'sqlite' ? `sqlite:${resolve(address)}` : address
}

export function movesOf({ engine }: Pick<StoreAddress, 'engine'>, { moves }: Pick<ServerStores, 'moves'>): StoreMoves {
  return engine === 'sqlite' ? sqliteMoves : moves
}
