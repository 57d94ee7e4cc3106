import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { ADMIN, logIn, push } from '../../support/relay/relay.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { type TracedRelay, tracedRelayOfTest } from '../../support/store/strace.ts'

/** Adds an endpoint. The first endpoint makes the relay create its key file. */
async function addEndpoint(relay: TracedRelay): Promise<number> {
  const headers = { authorization: `Bearer ${await logIn(relay.internalUrl, ADMIN)}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'shop', url: 'http://127.0.0.1:9/events' })
  return (await fetch(`${relay.internalUrl}/relay/endpoints`, { method: 'POST', headers, body })).status
}

const modesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]))
const OWNERS_ONLY = Object.fromEntries(
  ['', '-wal', '-shm', '.marker', '.key', '.lock', '.unstored'].map((suffix) => [`relay.db${suffix}`, '600']),
)

/** In the short form, the most open umask is enough to show a mistake. */
const UMASKS = byForm(['000'], ['000', '022', '077'])

test.each(UMASKS)('other users have no access to the files and folders of a store under umask %s', async (umask) => {
  const folder = join(temporaryFolder(), 'a', 'b')
  const relay = await tracedRelayOfTest(join(folder, '..', '..'), {
    wrapper: ['sh', '-c', `umask ${umask}; exec "$@"`, 'sh'],
    sections: { store: `sqlite:${join(folder, 'relay.db')}`, delivery: { allowNetworks: ['127.0.0.0/8'] } },
  })
  expect((await push(relay.publicUrl, pushBody({}))).status).toBe(200)
  expect(await addEndpoint(relay)).toBe(201)
  expect(modesIn(folder)).toEqual(OWNERS_ONLY)
  expect([folder, join(folder, '..')].map((made) => statSync(made).mode & 0o777)).toEqual([0o700, 0o700])
  expect(relay.output()).not.toContain('chmod')
})

test('if others can read the store, the start prints the command that removes their access', async () => {
  const folder = temporaryFolder()
  const store = join(folder, 'relay.db')
  await (await tracedRelayOfTest(folder)).kill()
  for (const name of ['relay.db', 'relay.db-wal', 'relay.db.lock']) chmodSync(join(folder, name), 0o644)
  const relay = await tracedRelayOfTest(folder)
  expect((await push(relay.publicUrl, pushBody({}))).status).toBe(200)
  expect(relay.output()).toContain(`Close it to them: chmod 600 ${store} ${store}-wal ${store}.lock"`)
})
