import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { WriteSide } from '../../../src/flow/write-side.ts'
import { told } from '../../../src/store/sqlite/migrations/0005-told.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { aPoll, type PollFields, type PushFields, pushBody } from '../../support/builders.ts'
import { strictLog } from '../../support/observed.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { addEndpoint, endpointOf } from '../../support/stored-endpoint.ts'
import { changeStoredRows } from '../../support/stored-rows.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { incomingPush } from '../../support/write-side.ts'
import { migrateAnew } from './taken-back.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const clock = { now: () => NOON, monotonic: () => performance.now() }

const open = (path: string) => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
const poll = (writes: WriteSide, fields: PollFields) =>
  writes.record([{ kind: 'poll', observation: aPoll({ askedAtMs: NOON, ...fields }), watch: true }])
const push = (writes: WriteSide, fields: PushFields) => writes.record([incomingPush(pushBody(fields), NOON)])
const polled = (minute: number) => ({ eventTimestamp: `2026-03-01T10:0${minute}:00Z` })
const pushed = (minute: number) => ({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
const bodyOf = (minute: number) => String(pushBody(pushed(minute)))

/** The store as a relay of the schema before left it. */
const UNTOLD = `
  alter table sighting drop column told;
  alter table feed drop column told_before;
  alter table endpoint drop column backfill_from;
  alter table endpoint drop column backfill_to;
  create index feed_carried_later on feed (entry) where carries is not null and kind != 0`

test('6.6: a store from before knows of every entry whether it was told as backfill, and of what a push revealed that it was', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const before = await open(path)
  const plain = await addEndpoint(before, NOON)
  const backfill = await addEndpoint(before, NOON, { name: 'backfill', backfill: true })
  await poll(before, { statuses: [4, 3, 2, 1].map(polled) })
  await push(before, pushed(2))
  // As it was told then: of the entry, and not of the push.
  const ofEntry =
    'update feed set entry = (select entry from feed as told where kind = 0 order by sequence limit 1 offset 1) where kind = 1'
  expect(await changeStoredRows(path, ofEntry)).toBe(1)
  await plain.take()
  await backfill.take()
  await before.close()
  await migrateAnew(path, UNTOLD, told)

  const after = await open(path)
  const late = await addEndpoint(after, NOON, { name: 'late', from: 0 })
  while (!(await after.replayFeed({ limit: 100, nowMs: NOON })).isDone);
  for (const minute of [2, 1, 3]) await push(after, { ...pushed(minute) })
  await push(after, { ...pushed(2), distributionType: 'Home' })
  const taken = [late, endpointOf(after, plain.id, NOON), endpointOf(after, backfill.id, NOON)]
  const bodies = []
  for (const { take } of taken) bodies.push((await take()).map(({ body }) => String(body)))
  expect(bodies).toEqual([[2, 1, 3].map(bodyOf), [1, 3].map(bodyOf), []])
  await after.close()
})

test('6.6: what a store from before has pruned from its feed was told', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const before = await open(path)
  const { id, take } = await addEndpoint(before, NOON)
  await poll(before, { statuses: [polled(1)] })
  await push(before, pushed(1))
  await take()
  await before.close()
  const prune = "insert into setting (name, value) select 'feed-pruned-to', cast(max(sequence) as blob) from feed; delete from feed"
  await migrateAnew(path, `${UNTOLD}; ${prune}`, told)
  const after = await open(path)
  await push(after, { ...pushed(1), distributionType: 'Home' })
  expect(await endpointOf(after, id, NOON).take()).toEqual([])
  await after.close()
})
