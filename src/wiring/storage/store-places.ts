import { resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { createSecret } from '../../config/secret.ts'
import { isPostgresUrl } from '../../config/values.ts'
import type { StoreMoves } from '../../store/moving/store-moves.ts'
import { postgresMoves } from '../../store/postgres/moving/postgres-moves.ts'
import { sqliteMoves } from '../../store/sqlite/moving/moves.ts'

/** A place for a store, as its engine takes it. */
export interface StorePlace {
  readonly engine: Config['store']['engine']
  readonly place: string
}

export function placeOf({ store }: Pick<Config, 'store'>): StorePlace {
  return store.engine === 'sqlite' ? { engine: store.engine, place: store.path } : { engine: store.engine, place: store.url.reveal() }
}

/** The setting `store` for a place. */
export function settingOf({ engine, place }: StorePlace): Config['store'] {
  return engine === 'sqlite' ? { engine, path: place } : { engine, url: createSecret(place) }
}

/** Reads a place as the setting `store` is written; null: it is none. */
export function readPlace(text: string): StorePlace | null {
  if (isPostgresUrl(text)) return { engine: 'postgres', place: text }
  return /^sqlite:\S.*$/.test(text) ? { engine: 'sqlite', place: resolve(text.slice('sqlite:'.length)) } : null
}

/** The same text, to be read elsewhere. */
export function writePlace({ engine, place }: StorePlace): string {
  return engine === 'sqlite' ? `sqlite:${resolve(place)}` : place
}

export function movesOf({ engine }: Pick<StorePlace, 'engine'>): StoreMoves {
  return engine === 'sqlite' ? sqliteMoves : postgresMoves
}
