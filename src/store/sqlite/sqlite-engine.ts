import type { Engine } from '../contract.ts'
import { createReadStore } from '../read-store.ts'
import { createWriteStore } from '../write-store.ts'
import { openSqliteReader, openSqliteWriter } from './sqlite.ts'

/** A place is the path of the database file. */
export const sqlite: Engine = {
  name: 'sqlite',
  async openWriteStore(place) {
    const engine = await openSqliteWriter(place)
    return { ...createWriteStore(engine), close: () => engine.close() }
  },
  openReadStore: (place) => createReadStore(openSqliteReader(place)),
}
