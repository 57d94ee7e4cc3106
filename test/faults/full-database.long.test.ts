import { chmodSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, vi } from 'vitest'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { textOf } from '../support/relay/caught-up.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { byForm } from '../support/runner/long-form.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { startOwnServer } from '../support/store/postgres-database.ts'
import { fillUp, smallDisk } from '../support/store/small-disk.ts'

const REFUSED = byForm(40, 200)
const RECOVERY_MS = withinOwed(5000)

testWith('a small file system')('while the database’s disk is full, replicas answer 503 and lose nothing acknowledged', async () => {
  const disk = smallDisk(260)
  // The database server runs as another user, who needs access to the folder.
  chmodSync(dirname(disk), 0o711)
  // Keep the server's WAL small. Its unused segments would be free space on the full disk.
  await using server = await startOwnServer({ parent: disk, settings: { max_wal_size: '64MB', min_wal_size: '32MB' } })
  const config = writeConfig(temporaryFolder(), 'http://127.0.0.1:9', await onPostgres(server.url()))
  await using one = await runRelay(config)
  await using other = await runRelay(config)
  const replicas = [one, other]
  const pushes = distinctPushes(10)
  const loads = replicas.map(({ publicUrl }) => startLoad(publicUrl, 4, pushes.next, { restMs: 5, isPatient: true }))
  for (const load of loads) await load.untilAnswered(byForm(30, 100))
  const ballast = fillUp(disk)
  const refusedOf = (load: (typeof loads)[number]) => load.answers().filter(({ status }) => status === 503).length
  const areRefused = () => expect(loads.map((load) => refusedOf(load) > REFUSED)).toEqual([true, true])
  await vi.waitFor(areRefused, { timeout: 60_000, interval: 50 })
  rmSync(ballast)
  const freedMs = performance.now()
  const isReady = async () => {
    for (const { internalUrl } of replicas) expect((await fetch(`${internalUrl}/readyz`)).status).toBe(200)
  }
  await vi.waitFor(isReady, { timeout: 60_000, interval: 50 })
  expect(performance.now() - freedMs).toBeLessThan(RECOVERY_MS)
  for (const load of loads) await load.untilAnswered(load.answered() + byForm(20, 100))
  const answers = (await Promise.all(loads.map((load) => load.stop()))).flat()
  expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
  const accepted = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  for (const { internalUrl } of replicas) {
    const asker = { internalUrl, token: await logIn(internalUrl, ADMIN) }
    const histories = await Promise.all(pushes.parcels(accepted).map((id) => textOf(asker, id, 'all', 'en')))
    const all = histories.join('\n')
    expect(accepted.filter((body) => !all.includes(pushes.entryOf(body)))).toEqual([])
  }
})
