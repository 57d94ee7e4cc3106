import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import { closeOpened, json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { eventually } from '../../faults/world.ts'
import { answerBody } from '../../support/history/builders.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { ask, logIn, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { HOUR_MS } from '../../support/runner/constants.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { withinOwed } from '../../support/runner/real-time.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'

const { parcels, ratePerSecond } = LONG ? { parcels: 100_000, ratePerSecond: 1000 } : { parcels: 1200, ratePerSecond: 100 }
const CONCURRENCY = 32

afterAll(closeOpened)

/** Fills a store as if every parcel had fallen due while the relay was down for a day. */
async function openAfterOutage(path: string): Promise<void> {
  const clock = { now: () => Date.now(), monotonic: () => performance.now() }
  const writes = await openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, console)
  await writes.close()
  const [now, seen] = [Date.now(), Date.now() - 30 * HOUR_MS]
  const nth = `with recursive nth(n) as (select 1 union all select n + 1 from nth where n < ${parcels})`
  const dueAtMs = `${now} - cast(((n * 7919) % ${parcels}) * ${(24 * HOUR_MS) / parcels} as integer)`
  await changeStoredRows(
    path,
    `${nth}
     insert into parcel (id, watched_at_ms, activated_at_ms, entry_count, latest_status, latest_at_ms, last_seen_at_ms, checked_at_ms, failures, next_poll_at_ms, is_full)
     select n, ${seen}, ${seen}, 0, null, null, ${seen}, ${seen}, 0, ${dueAtMs}, 0 from nth`,
  )
  await changeStoredRows(path, `${nth} insert into identifier (value, parcel_id, is_tracking_id) select printf('CU%07d', n), n, 0 from nth`)
}

/** Opens a carrier that knows every parcel, and records the time and the parcel of each call. */
async function openNotingCarrier() {
  const calls: { readonly identifier: string; readonly atMs: number }[] = []
  const eventTimestamp = new Date(Date.now() - 30 * HOUR_MS).toISOString()
  const { url } = await openCarrier({
    status(request, response) {
      const identifier = (request.url ?? '').split('/')[3] ?? ''
      calls.push({ identifier, atMs: performance.now() })
      json(response, 200, answerBody({ trackingIds: [`9${identifier.slice(2)}`], statuses: [{ eventTimestamp }] }).toString())
    },
  })
  return { url, calls, scheduled: () => calls.filter(({ identifier }) => identifier.startsWith('CU')) }
}

/** Returns the largest number of calls within one second. `calls` must be sorted by time. */
function mostInASecond(calls: readonly { readonly atMs: number }[]): number {
  let most = 0
  for (let first = 0, last = 0; last < calls.length; last++) {
    while ((calls[last]?.atMs ?? 0) - (calls[first]?.atMs ?? 0) >= 1000) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

test(`P12: a relay with ${parcels} parcels due after an outage polls all, despite a kill -9`, async () => {
  const folder = temporaryFolder()
  await openAfterOutage(join(folder, 'relay.db'))
  const carrier = await openNotingCarrier()
  const config = writeConfig(folder, carrier.url, {
    upstream: { ratePerSecond, concurrency: CONCURRENCY, callsPerDay: 10_000_000, languages: ['en'] },
  })
  const startedAt = performance.now()
  {
    await using relay = await runRelay(config)
    await eventually(async () => carrier.calls.length > parcels / 4, 900_000)
    relay.process.kill('SIGKILL')
    await relay.ended
  }
  const beforeKill = carrier.calls.splice(0)
  const resumedAt = performance.now()
  await using relay = await runRelay(config)
  const token = await logIn(relay.internalUrl)
  await eventually(async () => carrier.calls.length > parcels / 8, 900_000)
  const askedAt = performance.now()
  expect((await ask(relay.internalUrl, token, '/v1/status/APPASKS1/all')).status).toBe(200)
  const answeredMs = performance.now() - askedAt
  const known = new Set(beforeKill.map(({ identifier }) => identifier))
  const all = () => new Set([...known, ...carrier.scheduled().map(({ identifier }) => identifier)])
  await eventually(async () => carrier.calls.length >= parcels - beforeKill.length && all().size === parcels, 1_800_000)
  const endedAt = performance.now()
  const metrics = async () => await (await fetch(`${relay.internalUrl}/metrics`)).text()
  await eventually(async () => (await metrics()).includes('\nrelay_parcels_overdue 0\n'), 60_000)

  // Part of the backlog was still due when the app asked.
  expect(carrier.calls.findIndex(({ identifier }) => identifier === 'APPASKS1')).toBeLessThan(
    parcels - beforeKill.length - ratePerSecond / 2,
  )
  expect(answeredMs).toBeLessThan(withinOwed(2000))
  // Only a parcel whose poll the kill interrupted, or whose answer was not stored yet, is asked about twice.
  const repeated = carrier.scheduled().filter(({ identifier }) => known.has(identifier)).length
  expect(repeated).toBeLessThanOrEqual(CONCURRENCY)
  expect(carrier.scheduled().length + beforeKill.length - repeated).toBe(parcels)
  for (const [calls, ms] of [
    [beforeKill, resumedAt - startedAt],
    [carrier.calls, endedAt - resumedAt],
  ] as const) {
    expect(calls.length).toBeLessThanOrEqual((ratePerSecond * ms) / 1000 + ratePerSecond / 2 + 1)
    // The relay calls at 1.5 times the rate at most, but delayed calls may arrive together.
    expect(mostInASecond(calls)).toBeLessThanOrEqual(ratePerSecond * 2)
  }
  const seconds = (resumedAt - startedAt + endedAt - resumedAt) / 1000
  process.stderr.write(
    `${parcels} caught up with in ${seconds.toFixed(0)} s, ${repeated} asked twice, the app answered in ${answeredMs.toFixed(0)} ms\n`,
  )
})
