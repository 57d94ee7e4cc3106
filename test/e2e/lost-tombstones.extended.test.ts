import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, type Sections, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { runCommand } from '../support/relay/run-command.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { storedNumber } from '../support/store/stored-rows.ts'

const TEXT = pushBody({ trackingIds: ['GONE0001'] })

/** Erases a parcel, and stops the relay. */
async function erased(sections: Sections) {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER, sections)
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  await push(relay.publicUrl, TEXT)
  expect((await (await operatorOf(relay))('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
  const giveUp = (...args: readonly string[]) => runCommand(['secrets', 'give-up-tombstones', '--config', config, ...args])
  return { folder, config, relay, giveUp, place: typeof sections.store === 'string' ? sections.store : join(folder, 'relay.db') }
}

/** Loses the key, gives the tombstones up, and starts a relay, which then records what was erased. */
async function loseAndGiveUp({ folder, config, giveUp, place }: Awaited<ReturnType<typeof erased>>, sections: Sections): Promise<void> {
  expect(await runCommand(['serve', '--config', config])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('secrets give-up-tombstones'),
  })
  expect((await runCommand(['check', '--config', config])).stdout).toContain('secrets give-up-tombstones')
  // A replica that has just failed to start counts as running until its lease ends.
  await expect
    .poll(() => giveUp())
    .toMatchObject({ code: 0, stdout: expect.stringMatching(/First look for a copy of[\s\S]*Nothing was changed/) })
  expect(await storedNumber(place, 'select count(*) from tombstone')).toBe(1)
  expect(await giveUp('--yes')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 tombstone is given up') })
  expect(await giveUp('--yes')).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was erased') })
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  try {
    const operate = await operatorOf(relay)
    expect((await operate('GET', '/relay/audit')).body).toMatchObject({
      actions: [
        { action: 'secrets.tombstones_given_up', by: { kind: 'command' }, detail: { tombstones: 1 } },
        { action: 'parcels.erased' },
      ],
    })
    await push(relay.publicUrl, TEXT)
    expect((await operate('GET', '/relay/parcels/GONE0001')).status).toBe(200)
    expect((await operate('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
  } finally {
    await relay.stop()
  }
}

test('the tombstones of a stopped store whose key file is lost can be given up', async () => {
  const store = await erased({})
  const running = await store.giveUp('--yes')
  expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('already running')])
  await store.relay.stop()
  expect(await store.giveUp('--yes')).toMatchObject({ code: 1, stderr: expect.stringContaining('can be decrypted') })
  rmSync(`${store.place}.key`)
  await loseAndGiveUp(store, {})
  const aside = readdirSync(store.folder).filter((name) => name.includes('.tombstones.given-up-'))
  expect(aside).toHaveLength(1)
})

test('the tombstones of a database can be given up when secrets.atRestKeys is lost', async () => {
  const sections = await onPostgres()
  const store = await erased(sections)
  const running = await store.giveUp('--yes')
  expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('Stop them first')])
  await store.relay.stop()
  const other = { ...sections, secrets: { atRestKeys: [Buffer.alloc(32, 'other').toString('base64')] } }
  writeConfig(store.folder, NO_CARRIER, other)
  await loseAndGiveUp(store, other)
})

test('tombstones that only the file beside a restored store has are given up too', async () => {
  const store = await erased({})
  await store.relay.stop()
  rmSync(`${store.place}.key`)
  renameSync(`${store.place}.tombstones`, `${store.place}.kept`)
  expect(await store.giveUp('--yes')).toMatchObject({ code: 0 })
  for (const left of readdirSync(store.folder)) if (left.includes('given-up')) rmSync(join(store.folder, left))
  // As after a kill between the transaction and the renaming of the file.
  renameSync(`${store.place}.kept`, `${store.place}.tombstones`)
  expect(await store.giveUp('--yes')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 tombstone is given up') })
  expect(existsSync(`${store.place}.tombstones`)).toBe(false)
  await (await startTestRelay(store.folder, NO_CARRIER)).stop()
})
