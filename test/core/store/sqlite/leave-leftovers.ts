import { join } from 'node:path'
import Database from 'better-sqlite3'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

const ROWS = 2000
const REMOVED_AT_ONCE = 20

/** A word that many rows contain. */
export const SHARED_WORD = 'SHARED'

/**
 * Makes a database with rows in random order, some longer than a page, and deletes and changes many of them. Returns the words that no row
 * contains any more. Unused parts of pages still contain some of these words.
 */
export function leaveLeftovers(seed: number): { readonly path: string; readonly gone: readonly string[] } {
  const path = join(temporaryFolder(), 'planted.db')
  const { below, pick } = drawWith(seeded(seed))
  const db = new Database(path)
  db.pragma('secure_delete = ON')
  db.pragma('journal_mode = WAL')
  db.exec('create table name (value text primary key, parcel integer not null) without rowid')
  db.exec('create table body (id integer primary key, text text not null); create index body_by_text on body (text)')
  const words = Array.from({ length: ROWS }, (_, nth) => `X${below(1e9)}N${nth}Q`)
  const run = {
    name: db.prepare('insert into name values (?, ?)'),
    body: db.prepare('insert or replace into body values (?, ?)'),
    change: db.prepare('update body set text = ? where id = ?'),
    noName: db.prepare('delete from name where value = ?'),
    noBody: db.prepare('delete from body where id = ?'),
  }
  const idOf = new Map(words.map((word) => [word, below(1e12)]))
  db.transaction(() => {
    for (const word of words) {
      run.name.run(word, below(1e6))
      run.body.run(idOf.get(word), `${word} ${SHARED_WORD} ${'b'.repeat(below(pick([30, 300, 9000])))}`)
    }
  })()
  const gone = words.filter(() => below(2) === 0)
  const remove = db.transaction((some: readonly string[]) => {
    for (const [nth, word] of some.entries()) {
      run.noName.run(word)
      if (nth % 3 === 0) run.change.run(`changed ${'c'.repeat(below(500))}`, idOf.get(word))
      else run.noBody.run(idOf.get(word))
    }
  })
  for (let at = 0; at < gone.length; at += REMOVED_AT_ONCE) remove(gone.slice(at, at + REMOVED_AT_ONCE))
  db.close()
  return { path, gone }
}
