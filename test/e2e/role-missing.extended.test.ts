import { expect, test } from 'vitest'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ask, writeConfig } from '../support/relay/relay.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { withClient } from '../support/store/postgres-client.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

/** Returns the titles of the problems about roles, as `status` and the overview page get them. */
async function missingRoles({ asker }: ReplicaProcess): Promise<readonly string[]> {
  const found: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/overview')).json()
  const problems = typeof found === 'object' && found !== null && 'problems' in found && Array.isArray(found.problems) ? found.problems : []
  return problems.filter(({ kind }) => kind === 'role_missing').map(({ title }) => String(title))
}

test('S22: a role whose replica died is told missing by the other, until it can be taken over', async () => {
  const { url } = await createDatabase('nothing')
  const start = async () => await startReplica(writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(url)))
  await using first = await start()
  await using second = await start()
  await untilShared(second, 2, 0)
  const [lost] = (await first.itself())?.roles ?? []
  expect(await missingRoles(second)).toEqual([])
  // While another program holds the row, no replica can change roles.
  await withClient(url, async (program) => {
    await program.query("begin; select value from counter where name = 'roles' for update")
    first.process.kill('SIGKILL')
    await first.ended
    await expect.poll(() => missingRoles(second), { timeout: 120_000, interval: 500 }).toEqual([`No replica is the ${lost}`])
    await program.query('rollback')
  })
  await expect.poll(() => missingRoles(second), { timeout: 60_000, interval: 200 }).toEqual([])
  expect([...((await second.itself())?.roles ?? [])].toSorted()).toEqual(['janitor', 'poller'])
})
