import type { Engine } from '../contract.ts'
import { createReadStore } from '../read-store.ts'
import { openSqliteReader, openSqliteWriter } from './sqlite.ts'
import { createSqliteWriteStore } from './write-store.ts'

/** The SQLite engine. An address is the path of the database file. */
export const sqlite: Engine = {
  name: 'sqlite',
  async openWriteStore(address) {
    const engine = await openSqliteWriter(address)
    return { ...createSqliteWriteStore(engine), copier: engine.copier, close: () => engine.close() }
  },
  openReadStore: (address) => createReadStore(openSqliteReader(address)),
}
