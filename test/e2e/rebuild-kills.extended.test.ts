import { expect, test } from 'vitest'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER, NOON } from '../support/runner/constants.ts'
import { memberOf } from '../support/runner/members.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { rebuildStore } from '../support/store/rebuilt-store.ts'
import { changeStoredRows, storedNumber, storedRows } from '../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../support/store/write-side.ts'

const PARCELS = 12_000
const PATIENCE = { timeout: 60_000, interval: 5 }

test('a rebuild resumes after kills, and reports the same as one without kills', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER, {})
  const path = `${folder}/relay.db`
  const store = await openStore(NOON, sqlite, path)
  for (let at = 0; at < PARCELS; at += 500) {
    const ids = Array.from({ length: 500 }, (_, nth) => String(80_000_000 + at + nth))
    await store.record(...ids.map((id) => incomingPush(pushBody({ trackingIds: [id] }), NOON)))
  }
  const damaged = [5, 6000, PARCELS - 5]
  await changeStoredRows(path, `update parcel set entry_count = entry_count + 1 where id in (${damaged.join(', ')})`)
  const plain = await rebuildStore(store, { dryRun: true })
  expect([plain.parcels, plain.differing]).toEqual([PARCELS, damaged.length])
  await store.reads.close()
  await store.writes.close()

  const job = async () =>
    (await storedRows<{ id: number; done: number; state: string }>(path, 'select * from job order by id desc limit 1'))[0]
  {
    await using relay = await runRelay(config)
    expect((await (await operatorOf(relay))('POST', '/relay/rebuild')).status).toBe(202)
    await expect.poll(async () => (await job())?.done ?? 0, PATIENCE).toBeGreaterThan(0)
    expect(relay.process.kill('SIGKILL')).toBe(true)
  }
  const first = (await job())?.done ?? 0
  expect(first).toBeLessThan(PARCELS)
  {
    await using relay = await runRelay(config)
    await expect.poll(async () => (await job())?.done ?? 0, PATIENCE).toBeGreaterThan(first)
    expect(relay.process.kill('SIGKILL')).toBe(true)
  }
  await using relay = await runRelay(config)
  await expect.poll(async () => (await job())?.state, PATIENCE).toBe('done')
  const { body } = await (await operatorOf(relay))('GET', `/relay/jobs/${(await job())?.id ?? 0}`)
  for (const member of ['parcels', 'differing', 'left', 'stored', 'derived'] as const)
    expect([member, memberOf(body.report, member)]).toEqual([member, plain[member]])
  expect(await storedNumber(path, 'select count(*) from parcel where entry_count <> 1')).toBe(0)
  expect(await storedNumber(path, 'select count(*) from sighting')).toBe(PARCELS)
})
