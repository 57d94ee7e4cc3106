import type { Engine } from '../contract.ts'
import { createReadStore } from '../read-store.ts'
import { openSqliteReader, openSqliteWriter } from './sqlite.ts'
import { createSqliteWriteStore } from './write-store.ts'

/** SQLite. `place` is the path of the database file. */
export const sqlite: Engine = {
  name: 'sqlite',
  async openWriteStore(place) {
    const engine = await openSqliteWriter(place)
    return { ...createSqliteWriteStore(engine), close: () => engine.close() }
  },
  openReadStore: (place) => createReadStore(openSqliteReader(place)),
}
