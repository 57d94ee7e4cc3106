import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { push, writeConfig } from '../../support/relay/relay.ts'
import { startReplica } from '../../support/relay/replica-processes.ts'
import { expectBesideControl, partOf } from '../../support/runner/beside-control.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const PARCELS = 2000
/** The delay between each replica and the server, in milliseconds. */
const AWAY_MS = 2
const PUSHES = 40
/** How many times as long a push may take. It may wait for one of the transactions that watch the list, but not for all of them. */
const RATIO = 5

test(`a push waits little longer while another replica watches ${PARCELS} known parcels`, async () => {
  const { url } = await createDatabase()
  const proxy = await startDatabaseProxy(url, { awayMs: AWAY_MS })
  const sections = { ...(await onPostgres(proxy.through)), poll: { cron: '0 0 0 1 1 *' } }
  const config = writeConfig(temporaryFolder(), 'http://127.0.0.1:9', sections)
  await using one = await startReplica(config)
  await using other = await startReplica(config)

  const idOf = (nth: number) => String(82_000_000 + (nth % PARCELS))
  const body = Array.from({ length: PARCELS }, (_, nth) => idOf(nth)).join('\n')
  const headers = { authorization: `Bearer ${other.asker.token}`, 'content-type': 'text/csv' }
  const watchAll = async (created: number) => {
    const answer = await fetch(`${other.internalUrl}/relay/parcels/watch`, { method: 'POST', body, headers })
    expect(await answer.json()).toMatchObject({ watched: PARCELS, created, failed: 0 })
  }
  let pushed = 0
  /** Pushes about parcels of the list, and resolves with the 95th percentile of the times. */
  const pushOn = async () => {
    const tookMs: number[] = []
    for (let nth = 0; nth < PUSHES; nth++) {
      const begunAtMs = performance.now()
      // Choose parcels from all parts of the list.
      expect((await push(one.publicUrl, pushBody({ trackingIds: [idOf(37 * pushed++)] }))).status).toBe(200)
      tookMs.push(performance.now() - begunAtMs)
    }
    return partOf(tookMs, 0.95)
  }
  const besideLists = async () => {
    let goesOn = true
    let lists = 0
    const watching = (async () => {
      for (; goesOn; lists++) await watchAll(0)
    })()
    const slowMs = await pushOn().finally(() => {
      goesOn = false
    })
    await watching
    expect(lists).toBeGreaterThan(0)
    return slowMs
  }

  await watchAll(PARCELS)
  await pushOn()
  console.log(await expectBesideControl({ control: pushOn, fault: besideLists, ratio: RATIO }))
})
