import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../../../support/history/builders.ts'
import type { AnswerAt } from '../../../support/network/answers-at.ts'
import { ask, logIn, push } from '../../../support/relay/relay.ts'
import { relayOfTest } from '../../../support/relay/relay-of-test.ts'
import { onlyLong } from '../../../support/runner/long-form.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore, recorded } from '../../../support/store/written-before.ts'

const PARCEL = '10010'

async function differing(path: string) {
  return await differingFromBefore(await openWrittenBefore(path))
}

/** Returns a list in the body of an answer. */
function listed({ path, body }: AnswerAt, name: string): readonly unknown[] {
  const members = new Map<string, unknown>(Object.entries(JSON.parse(body)))
  const list = members.get(name)
  if (Array.isArray(list)) return list
  throw new Error(`${path} has no ${name}: ${body}`)
}

/** Returns the end of the feed at the time when it was read. */
function feedEndOf(answers: readonly AnswerAt[]): string {
  return answers.findLast(({ path }) => path.startsWith('/relay/events'))?.path.match(/after=(\d+)/)?.[1] ?? ''
}

test('a store of the previous version gives that version’s answers, byte for byte', async () => {
  expect(recorded.answers.length).toBeGreaterThan(200)
  expect(await differing(copyWrittenBefore().path)).toEqual([])
})

test('a store of the previous version gets the columns of a new one', async () => {
  const columnsOf = async (path: string) => {
    await (await sqlite.openWriteStore(path)).close()
    const db = new Database(path, { readonly: true })
    const columns = `select t.name as "table", c.name, c.type, c."notnull", c.dflt_value, c.pk
      from sqlite_schema as t join pragma_table_info(t.name) as c where t.type = 'table' order by 1, 2`
    const found = db.prepare(columns).all()
    db.close()
    return found
  }
  const made = await columnsOf(join(temporaryFolder(), 'relay.db'))
  expect(made.length).toBeGreaterThan(200)
  expect(await columnsOf(copyWrittenBefore().path)).toEqual(made)
})

onlyLong(test)('one location that is stored differently shows in the answers', async () => {
  const { path } = copyWrittenBefore()
  const db = new Database(path)
  const change = "update content set json = replace(json, 'Umeå', 'Umea') where id = (select min(id) from content where json like '%Umeå%')"
  expect(db.prepare(change).run().changes).toBe(1)
  db.close()
  expect((await differing(path)).length).toBeGreaterThan(0)
})

test('a push to a store of the previous version extends its history, feed and deliveries', async () => {
  const { writes, get } = await openWrittenBefore(copyWrittenBefore().path)
  const look = async () => ({
    entries: listed(await get(`/v1/status/${PARCEL}/all?language=en`), 'statuses'),
    events: listed(await get(`/relay/events?after=${feedEndOf(recorded.answers)}`), 'events'),
    deliveries: listed(await get(`/relay/deliveries?parcel=${PARCEL}&limit=500`), 'deliveries'),
  })
  const before = await look()
  const body = pushBody({ eventTime: new Date(recorded.nowMs).toISOString(), trackingIds: [PARCEL], texts: { en: 'After the change' } })
  const { outcomes } = await writes.record([parsePush({ body, contentEncoding: null, receivedAtMs: recorded.nowMs, keyIndex: 0 })])
  expect(outcomes).toMatchObject([{ kind: 'recorded', newEntries: 1, queued: 4 }])
  const { entries, events, deliveries } = await look()
  expect(entries.slice(1)).toEqual(before.entries)
  expect(entries[0]).toMatchObject({ consumerDescription: 'After the change' })
  expect([before.events, events.length]).toEqual([[], 1])
  expect(deliveries.slice(4)).toEqual(before.deliveries)
  // One endpoint of this store has answered 410, so its events are held.
  expect(deliveries.slice(0, 4)).toMatchObject([{ state: 'held' }, ...Array.from({ length: 3 }, () => ({ state: 'queued' }))])
})

test('the relay starts on a store of the previous version, answers and takes a push', async () => {
  const relay = await relayOfTest({ upstream: { languages: ['en', 'sv'] } }, { folder: copyWrittenBefore().folder })
  const token = await logIn(relay.internalUrl)
  for (const { path, body, status } of recorded.answers.filter(({ path, status }) => status === 200 && path.endsWith('/all?language=sv'))) {
    const answer = await ask(relay.internalUrl, token, path)
    expect([path, answer.status, await answer.text()]).toEqual([path, status, body])
  }
  const newest = { trackingIds: [PARCEL], eventTime: new Date().toISOString() }
  expect((await push(relay.publicUrl, pushBody(newest))).status).toBe(200)
  const all = `/v1/status/${PARCEL}/all`
  const { statuses } = JSON.parse(await (await ask(relay.internalUrl, token, all)).text())
  expect(statuses[0]).toMatchObject({ eventTimestamp: newest.eventTime })
})
