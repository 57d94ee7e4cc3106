import { expect, onTestFinished, test } from 'vitest'
import { takeRelayLease } from '../../../src/store/postgres/relay-lease.ts'
import { withClient } from '../../support/postgres-client.ts'
import { createDatabase } from '../../support/postgres-database.ts'

const options = { ttlMs: 300, onWaiting: () => undefined }
/** Of another machine: nobody here knows whether it lives. */
const ELSEWHERE = 'another-machine/7/abcd'

async function heldElsewhere(url: string, untilMs: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `insert into lease (role, holder, epoch, until_ms) values ('relay', $1, 1, ${untilMs})
      on conflict (role) do update set holder = $1, epoch = lease.epoch + 1, until_ms = ${untilMs}`,
      [ELSEWHERE],
    ),
  )
}

const FAR = '(extract(epoch from clock_timestamp()) * 1000)::bigint + 60000'

test('S11: a second relay on a database is refused, and told who is there', async () => {
  const { url } = await createDatabase()
  await heldElsewhere(url, FAR)
  const waiting: string[] = []
  await expect(takeRelayLease(url, { ttlMs: 300, onWaiting: (holder) => waiting.push(holder) })).rejects.toThrow(
    /^store: another relay uses postgres:\/\/relay@127\.0\.0\.1:\d+\/\w+: process 7 on another-machine\. This version runs one relay/,
  )
  expect(waiting).toEqual([ELSEWHERE])
})

test('S11: a lease that has lapsed, was released, or is of a process that is gone, keeps nobody waiting', async () => {
  const { url } = await createDatabase()
  await heldElsewhere(url, '0')
  const first = await takeRelayLease(url, options)
  await first.release()
  // A relay of this process that never released its lease: as after a kill and a restart under the same number.
  const second = await takeRelayLease(url, { ...options, ttlMs: 60_000 })
  const waiting: string[] = []
  const third = await takeRelayLease(url, { ...options, onWaiting: (holder) => waiting.push(holder) })
  onTestFinished(() => Promise.all([second.release(), third.release()]).then(() => undefined))
  expect(waiting).toEqual([])
})

test('a relay whose database another one has taken over learns of it', async () => {
  const { url } = await createDatabase()
  const lease = await takeRelayLease(url, options)
  onTestFinished(() => lease.release())
  await heldElsewhere(url, FAR)
  expect((await lease.lost).message).toContain('another relay has taken the database over')
})
