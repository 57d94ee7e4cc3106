import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { type RunningProcess, runRelay } from '../support/relay/relay-process.ts'
import { DAY_MS, NO_CARRIER } from '../support/runner/constants.ts'
import { listOf, memberOf } from '../support/runner/members.ts'
import { movableClock } from '../support/runner/movable-clock.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows, storedNumber, storedRows } from '../support/store/stored-rows.ts'

const PATIENCE = { timeout: 60_000, interval: 20 }
const KEPT = { raw: '6d', feed: '6d', deliveries: '3d', history: '10d', audit: '300d', held: '20d' }

/** Asks as an operator who has just logged in, because yesterday's token has expired. */
async function get(relay: RunningProcess, path: string) {
  return await (await operatorOf(relay))('GET', path)
}

const lastPassAt = async (relay: RunningProcess) => {
  const { body } = await get(relay, '/relay/retention')
  return Date.parse(String(memberOf(body.last, 'startedAt')))
}

test('old data is deleted; readers and operators are told, and the audit trail records it', async () => {
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { retention: KEPT }), clock.env)
  const report = async (id: string, status: string) => {
    const body = pushBody({ trackingIds: [id], status, eventTime: new Date(clock.now()).toISOString() })
    // A slow disk may refuse a push once. A carrier sends it again.
    await expect.poll(async () => (await push(relay.publicUrl, body)).status, PATIENCE).toBe(200)
  }
  const operate = await operatorOf(relay)
  const shop = { name: 'shop', url: 'http://10.0.0.1/', enabled: false, filters: { status: ['DeliveryStarted'] } }
  expect((await operate('POST', '/relay/endpoints', shop)).status).toBe(201)
  await report('OWED0001', 'DeliveryStarted')
  await report('GONE0001', 'Created')
  for (const id of ['OWED0001', 'GONE0001']) expect((await operate('DELETE', `/relay/parcels/${id}/watch`)).status).toBeLessThan(300)
  const begun = (await operate('GET', '/relay/events?after=0')).body
  const last = listOf(begun, 'events').at(-1)
  const [cursor, goneId] = [Number(memberOf(last, 'sequence')), memberOf(memberOf(last, 'parcel'), 'id')]
  expect(goneId).toEqual(expect.any(String))

  let day = 0
  /** Advances the clock day by day. Each day gets a push, and a retention pass at its end. */
  const passTo = async (end: number) => {
    for (; day < end; day++) {
      await report(`DAY${String(day).padStart(5, '0')}`, 'Created')
      clock.pass(DAY_MS)
      const fromMs = clock.now() - DAY_MS / 2
      await expect.poll(() => lastPassAt(relay), PATIENCE).toBeGreaterThan(fromMs)
    }
  }
  const owed = async () =>
    listOf((await get(relay, '/relay/deliveries?parcel=OWED0001')).body, 'deliveries').map((one) => memberOf(one, 'state'))
  const givenUp = async () => ({
    audited: listOf((await get(relay, '/relay/audit?limit=100')).body, 'actions').filter(
      (one) => memberOf(one, 'action') === 'retention.gave_up',
    ),
    told: listOf((await get(relay, '/relay/operator-events?event=retention_gave_up')).body, 'events'),
  })

  await passTo(8)
  const pruned = await get(relay, `/relay/events?after=${cursor}`)
  expect(pruned).toMatchObject({ status: 410, body: { type: 'urn:parcel-relay:error:feed_gone' } })
  const oldest = Number(pruned.body.oldestSequence)
  const read = await get(relay, `/relay/events?after=${oldest - 1}`)
  expect([read.status, memberOf(listOf(read.body, 'events')[0], 'sequence')]).toEqual([200, oldest])
  expect((await get(relay, '/relay/parcels/GONE0001')).status).toBe(200)

  await passTo(13)
  expect((await get(relay, '/relay/parcels/GONE0001')).status).toBe(404)
  expect((await get(relay, '/relay/parcels/OWED0001')).status).toBe(200)
  const late = await get(relay, `/relay/events?after=${Number((await get(relay, '/relay/events?after=0')).body.oldestSequence) - 1}`)
  expect(listOf(late.body, 'events')).toContainEqual(
    expect.objectContaining({ kind: 'retired', parcel: expect.objectContaining({ id: goneId }) }),
  )

  await passTo(19)
  expect([await owed(), await givenUp()]).toEqual([['held'], { audited: [], told: [] }])
  await passTo(23)
  expect(await owed()).toEqual(['cancelled'])
  const { audited, told } = await givenUp()
  expect(audited).toMatchObject([{ action: 'retention.gave_up', by: { kind: 'relay' }, detail: { givenUp: { overdue: 1 } } }])
  expect(told).toMatchObject([{ event: 'retention_gave_up' }])
})

/** Adds pushes without a parcel, received 100 days ago. */
async function plantOldPushes(path: string, count: number): Promise<void> {
  await changeStoredRows(
    path,
    `insert into inbox (digest, received_at_ms, key_index, state, reason, parcel_id, body)
      with recursive n (n) as (select 1 union all select n + 1 from n where n < ${count})
      select randomblob(16), ${Date.now() - 100 * DAY_MS}, 0, 3, 'schema', 0, randomblob(200) from n`,
  )
}

test('S20: a killed retention pass resumes where it was, and counts each row once', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'relay.db')
  const clock = movableClock(folder)
  const config = writeConfig(folder, NO_CARRIER, {})
  const rows = 20_000
  const passUnderWay = async () => {
    const [row] = await storedRows<{ readonly value: Uint8Array }>(path, "select value from setting where name = 'retention'")
    return memberOf(JSON.parse(row === undefined ? '{}' : Buffer.from(row.value).toString()), 'pass')
  }
  const kept = () => storedNumber(path, 'select count(*) from inbox where body is not null')
  {
    await using relay = await runRelay(config, clock.env)
    await expect.poll(() => lastPassAt(relay), PATIENCE).toBeGreaterThan(0)
    expect((await push(relay.publicUrl, pushBody({ eventTime: new Date(clock.now()).toISOString() }))).status).toBe(200)
  }
  await plantOldPushes(path, rows)
  clock.pass(2 * 3_600_000)
  let kills = 0
  for (; kills < 5 && (await kept()) > 1; kills++) {
    const before = await kept()
    await using relay = await runRelay(config, clock.env)
    await expect.poll(kept, PATIENCE).toBeLessThan(before)
    expect(relay.process.kill('SIGKILL')).toBe(true)
  }
  expect(kills).toBeGreaterThan(1)
  await using relay = await runRelay(config, clock.env)
  await expect.poll(passUnderWay, PATIENCE).toBeNull()
  expect((await get(relay, '/relay/retention')).body).toMatchObject({ last: { removed: { pushBytes: rows } } })
  expect(await kept()).toBe(1)
})
