import type Database from 'better-sqlite3'
import { lastSequenceIn } from './manifest.ts'

/** The tables whose ids appear in other places, so that no id may be assigned twice. */
const NUMBERED = ['parcel', 'inbox', 'endpoint', 'delivery', 'job'] as const

/** The highest numbers that a store has assigned. */
export interface GivenNumbers extends Readonly<Record<(typeof NUMBERED)[number], number>> {
  readonly sequence: number
}

export function numbersIn(db: Database.Database): GivenNumbers {
  const number = (query: string) => Number(db.prepare(query).pluck().get() ?? 0)
  const lastOf = (table: string) =>
    Math.max(number(`select seq from sqlite_sequence where name = '${table}'`), number(`select max(id) from ${table}`))
  return {
    // If somebody has changed the store by hand, its rows may have higher numbers than its counters.
    sequence: Math.max(lastSequenceIn(db), number('select max(sequence) from feed'), number('select max(sequence) from delivery')),
    parcel: lastOf('parcel'),
    inbox: lastOf('inbox'),
    endpoint: lastOf('endpoint'),
    delivery: lastOf('delivery'),
    job: lastOf('job'),
  }
}

export function highest(a: GivenNumbers, b: GivenNumbers): GivenNumbers {
  const of = (name: keyof GivenNumbers) => Math.max(a[name], b[name])
  return {
    sequence: of('sequence'),
    parcel: of('parcel'),
    inbox: of('inbox'),
    endpoint: of('endpoint'),
    delivery: of('delivery'),
    job: of('job'),
  }
}

/** Makes each counter continue after these numbers. */
export function setNumbers(db: Database.Database, { sequence, ...ids }: GivenNumbers): void {
  db.prepare("insert or replace into setting (name, value) values ('sequence', ?)").run(Buffer.from(String(sequence)))
  for (const name of NUMBERED) {
    db.prepare('delete from sqlite_sequence where name = ?').run(name)
    db.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(name, ids[name])
  }
}
