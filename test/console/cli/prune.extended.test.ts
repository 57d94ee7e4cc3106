import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN, push, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

const run = promisify(execFile)
const DAY_MS = 86_400_000

async function prune(args: readonly string[]) {
  const { args: relay, env } = shipped()
  const all = { ...env, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }
  return await run(process.execPath, [...relay, 'prune', ...args], { env: all }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

function numberIn(text = ''): number {
  return Number(text.replaceAll(',', ''))
}

/** Sends pushes, and dates all except the newest back by 100 days. */
async function pushLongAgo(publicUrl: string, path: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const body = pushBody({ trackingIds: [String(72_000_000 + at)], eventTime: new Date().toISOString(), location: 'x'.repeat(20_000) })
    expect((await push(publicUrl, body)).status).toBe(200)
  }
  await changeStoredRows(path, `update inbox set received_at_ms = ${Date.now() - 100 * DAY_MS} where id < (select max(id) from inbox)`)
}

test('prune says what it would remove, removes it, and compacts the file of a stopped relay', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'relay.db')
  const config = writeConfig(folder, NO_CARRIER, {})
  const compact = ['--compact', '--config', config]
  {
    await using relay = await runRelay(config)
    await pushLongAgo(relay.publicUrl, path, 40)
    const url = ['--url', relay.internalUrl]
    expect(await prune([...url, '--compact', '--dry-run'])).toMatchObject({ code: 2 })
    const said = await prune([...url, '--dry-run'])
    expect(said).toMatchObject({ code: 0, stdout: 'Would go now:\n  Bytes of pushes  39\n' })
    const kept = () => storedNumber(path, 'select count(*) from inbox where body is not null')
    expect(await kept()).toBe(40)
    expect(await prune(url)).toMatchObject({ code: 0, stdout: 'Removed:\n  Bytes of pushes  39\n' })
    expect(await prune([...url, '--dry-run'])).toMatchObject({ code: 0, stdout: 'Nothing to remove.\n' })
    expect(await kept()).toBe(1)
    const operate = await operatorOf(relay)
    const { body } = await operate('GET', '/relay/retention')
    expect(body).toMatchObject({
      retention: { raw: '90d' },
      last: { removed: { pushBytes: 39 }, held: {} },
      wouldGo: { pushBytes: { count: 0 } },
    })
    expect((await operate('GET', '/relay/audit?limit=1')).body).toMatchObject({ actions: [{ action: 'retention.ordered' }] })
    // The running relay uses the file, so it cannot be compacted.
    expect(await prune(compact)).toMatchObject({ code: 1, stderr: expect.stringContaining('already running') })
  }
  const before = await storedNumber(path, 'select count(*) from inbox')
  const done = await prune(compact)
  const [, had, has] = /had ([\d,]+) bytes, and has ([\d,]+) now/.exec(done.stdout) ?? []
  expect([done.code, numberIn(has) * 2 < numberIn(had)]).toEqual([0, true])
  expect(await storedNumber(path, 'select count(*) from inbox')).toBe(before)
  await using again = await runRelay(config)
  expect((await push(again.publicUrl, pushBody())).status).toBe(200)
})
