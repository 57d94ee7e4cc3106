import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, test } from 'vitest'
import { encodeContent } from '../../../src/domain/history/content.ts'
import { encodeAll, encodeLatest } from '../../../src/domain/history/pull-response.ts'
import { groupOf, keyOf, type Sighting } from '../../../src/domain/history/status-entry.ts'
import { createReadStore } from '../../../src/store/read-store.ts'
import { listings } from '../../../src/store/sqlite/migrations/0007-listings.ts'
import { openSqliteReader } from '../../../src/store/sqlite/sqlite.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { casesOf } from '../../support/long-form.ts'
import { type Observation, observationsOfFirstVersions, type Seen } from '../../support/observations.ts'
import { incomingOf, strictLog } from '../../support/observed.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const NOON = Date.UTC(2026, 2, 1, 15)
const clock = { now: () => NOON, monotonic: () => performance.now() }
const open = (path: string) => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, strictLog)

async function served(path: string): Promise<readonly (string | undefined)[]> {
  const reads = createReadStore(openSqliteReader(path))
  const answers: (string | undefined)[] = []
  for (const id of ['1001', '1002', '2001', '2002', 'AB123456789SE', 'CD123456789SE']) {
    const view = await reads.findParcel(id)
    if (view !== null) answers.push(encodeAll(view, ['en', 'sv']).body, encodeLatest(view, ['sv', 'en'])?.body)
  }
  await reads.close()
  return answers
}

interface FormerSighting {
  readonly sighting: Sighting
  readonly content: string
  readonly listing: number
  readonly ordinal: number
  readonly askedAtMs: number
}

/** As it was before: unknown members were words like all others. */
function formerlyListed(observation: Observation): readonly FormerSighting[] {
  const whole = (sighting: Sighting) => JSON.stringify({ ...JSON.parse(encodeContent(sighting)), extra: sighting.extra })
  if (observation.kind === 'push') {
    const { sighting } = observation
    return [{ sighting, content: whole(sighting), listing: 0, ordinal: 0, askedAtMs: 0 }]
  }
  const { askedAtMs } = observation
  const groups = Map.groupBy(observation.sightings.toReversed(), groupOf)
  return [...groups.values()].flatMap((group) => {
    const isAlone = group.length === 1 || observation.skipped > 0
    const text = group.map((one) => `{"content":${whole(one)},"eventTimestamp":${JSON.stringify(one.instant.text)}}`).join('\n')
    const listing = isAlone ? 0 : createHash('sha256').update(text).digest().readUIntBE(0, 6)
    const seen = new Map<string, number>()
    return group.map((sighting) => {
      const { atMs, location } = keyOf(sighting)
      const ordinal = isAlone ? 0 : (seen.get(`${atMs} ${location}`) ?? 0)
      seen.set(`${atMs} ${location}`, ordinal + 1)
      return { sighting, content: whole(sighting), listing, ordinal, askedAtMs }
    })
  })
}

/** Writes the sightings of a store as a relay before would have; gives the number of their rows. */
function writeFormerly(path: string, all: readonly Seen[]): number {
  const db = new Database(path)
  db.exec('alter table sighting drop column extra; delete from sighting; delete from content')
  const parcelOf = db.prepare<[string], number>('select parcel_id from identifier where value = ?').pluck()
  const addContent = db.prepare('insert into content (digest, json) values (?, ?) on conflict do nothing')
  const contentOf = db.prepare<[Buffer], number>('select id from content where digest = ?').pluck()
  const add = db.prepare(
    `insert into sighting (parcel_id, at_ms, has_ms, content_id, listing, ordinal, asked_at_ms, sequence) values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict do update set asked_at_ms = max(asked_at_ms, excluded.asked_at_ms)`,
  )
  let sequence = 0
  for (const { observation } of all) {
    const [id = ''] = observation.kind === 'poll' ? [observation.asked] : observation.trackingIds
    for (const { sighting, content, listing, ordinal, askedAtMs } of formerlyListed(observation)) {
      const digest = createHash('sha256').update(content).digest().subarray(0, 16)
      addContent.run(digest, content)
      const { atMs, text } = sighting.instant
      add.run(parcelOf.get(id), atMs, text.includes('.') ? 1 : 0, contentOf.get(digest), listing, ordinal, askedAtMs, ++sequence)
    }
  }
  const rows = db.prepare<[], number>('select count(*) from sighting').pluck().get() ?? 0
  db.close()
  return rows
}

async function migrate(path: string): Promise<void> {
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: new Database(path) }) })
  await db.connection().execute((connection) => listings.up(connection))
  await db.destroy()
}

/** No two polls are asked for at once: of those the greater stays whole, where each sighting was weighed on its own. */
function askedInTurn(all: readonly Seen[]): readonly Seen[] {
  return all.map((seen, at) => {
    const { observation } = seen
    return observation.kind === 'push' ? seen : { ...seen, observation: { ...observation, askedAtMs: observation.askedAtMs + at } }
  })
}

test('a store that holds a sighting for every change of an unknown member opens smaller, and with the same answers', async () => {
  const folder = temporaryFolder()
  let file = 0
  let shrunk = 0
  await fc.assert(
    fc.asyncProperty(observationsOfFirstVersions.map(askedInTurn), async (all) => {
      const path = join(folder, `${file++}.db`)
      const writes = await open(path)
      for (const one of all) await writes.record([incomingOf(one, NOON)])
      await writes.close()
      const before = await served(path)
      const sightings = (db: Database.Database) =>
        db
          .prepare(
            'select parcel_id, at_ms, has_ms, json, listing, ordinal, asked_at_ms, extra from sighting join content on id = content_id order by 1, 2, 3, 4, 5, 6',
          )
          .all()
      const read = () => {
        const db = new Database(path, { readonly: true })
        try {
          return sightings(db)
        } finally {
          db.close()
        }
      }
      const stored = read()
      const rows = writeFormerly(path, all)
      await migrate(path)
      expect(read()).toEqual(stored)
      expect(await served(path)).toEqual(before)
      if (rows > stored.length) shrunk++
    }),
    { numRuns: casesOf(50, 15), seed: 20261125 },
  )
  expect(shrunk).toBeGreaterThan(1)
})

test('of the answers that a store has piled up a few stay, and those that decide something', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  await (await open(path)).close()
  const db = new Database(path)
  db.exec('alter table sighting drop column extra')
  const add = db.prepare(
    'insert into answer (parcel_id, language, digest, asked_at_ms, entry_count, is_flawed, decides_order, head) values (1, ?, ?, ?, 1, 0, ?, ?)',
  )
  const head = (distributionType: string | null) => JSON.stringify({ trackingIds: [], distributionType, extra: [] })
  for (const language of ['en', 'sv']) {
    for (let at = 1; at <= 100; at++) {
      add.run(language, Buffer.from([at]), at, language === 'en' && at === 3 ? 1 : 0, head(at <= 50 ? 'Mailbox' : null))
    }
  }
  db.close()
  await migrate(path)
  const after = new Database(path, { readonly: true })
  const kept = (language: string) => after.prepare('select asked_at_ms from answer where language = ? order by 1').pluck().all(language)
  const lastAsked = [93, 94, 95, 96, 97, 98, 99, 100]
  expect([kept('en'), kept('sv')]).toEqual([
    [3, 50, ...lastAsked],
    [50, ...lastAsked],
  ])
  after.close()
})
