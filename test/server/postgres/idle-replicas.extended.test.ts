import { setTimeout as pause } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { NO_CARRIER, NOON } from '../../support/runner/constants.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openStore } from '../../support/store/write-side.ts'

const ORDERS = "select value from counter where name = 'orders'"

/** Returns how often replicas were told that deliveries have changed. */
async function announcementsAt(url: string): Promise<number> {
  return await withClient(url, async (client) => Number((await client.query<{ value: string }>(ORDERS)).rows[0]?.value))
}

test('a replay or a job is announced to other replicas only if it has done something', async () => {
  const { path, writes, push: record } = await openStore(NOON, postgres)
  await record()
  const before = await announcementsAt(path)
  expect(await writes.replayFeed({ limit: 10, nowMs: NOON })).toMatchObject({ hasAdvanced: false })
  expect(await writes.workOnJobs({ limit: 10, nowMs: NOON })).toMatchObject({ hasWorked: false })
  expect(await announcementsAt(path)).toBe(before)
  await addEndpoint(writes, NOON, { from: 0 })
  const added = await announcementsAt(path)
  expect(await writes.replayFeed({ limit: 10, nowMs: NOON })).toMatchObject({ hasAdvanced: true, queued: 1 })
  expect(await announcementsAt(path)).toBe(added + 1)
})

test('idle replicas do not keep waking each other', async () => {
  const { url } = await createDatabase('nothing')
  const [one] = [await startIdle(url), await startIdle(url)]
  // A push causes a first announcement.
  expect((await push(one.publicUrl, pushBody({}))).status).toBe(200)
  await vi.waitFor(async () => {
    const before = await announcementsAt(url)
    // This is ten times as long as a replica waits between two checks.
    await pause(1000)
    expect(await announcementsAt(url)).toBe(before)
  })
})

async function startIdle(url: string) {
  const endpoints = [{ name: 'shop', url: NO_CARRIER, sharedKey: 'the-key-of-this-endpoint' }]
  return await relayOfTest({ ...(await onPostgres(url)), endpoints, poll: { cron: '0 0 1 1 *' } })
}
