import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { startWebhookReceiver } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { push } from '../../support/relay/relay.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { spawnTraced, type TracedRelay, tracedRelayOfTest } from '../../support/store/strace.ts'

const RELAYING = { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['250ms', '250ms', '250ms', '250ms', '1s'] } }

const statusOf = async (relay: TracedRelay, name: string) => (await push(relay.publicUrl, pushBody({ location: name }))).status

async function readiness(relay: TracedRelay) {
  const answer = await fetch(`${relay.internalUrl}/readyz`)
  return { status: answer.status, text: await answer.text() }
}

async function stop(relay: TracedRelay): Promise<void> {
  relay.process.kill('SIGTERM')
  await relay.ended
}

test('S11: a store in use is not opened again through a link of any kind', async () => {
  const folder = temporaryFolder()
  const store = join(folder, 'relay.db')
  const first = await tracedRelayOfTest(folder)
  const elsewhere = temporaryFolder()
  symlinkSync(store, join(elsewhere, 'link.db'))
  symlinkSync('link.db', join(elsewhere, 'relative.db'))
  const other = join(folder, 'other')
  mkdirSync(other)
  const pid = first.process.pid
  const expectRefused = async (place: string, message: string) => {
    const second = spawnTraced(elsewhere, { sections: { store: `sqlite:${place}` } })
    await expect(second).rejects.toMatchObject({ code: 1, message: expect.stringContaining(message) })
  }
  // The second name is a relative link to the first.
  for (const name of byForm(['relative.db'], ['link.db', 'relative.db'])) {
    await expectRefused(join(elsewhere, name), `already running on ${store}, pid ${pid}`)
  }
  linkSync(store, join(other, 'relay.db'))
  await expectRefused(
    join(other, 'relay.db'),
    `has 2 names (hard links), and a relay is already running on it under another of them, pid ${pid}`,
  )
  expect(await statusOf(first, 'still')).toBe(200)
  await stop(first)
  // Now no relay uses the store, so a second name does no harm.
  const again = await tracedRelayOfTest(elsewhere, { sections: { store: `sqlite:${join(elsewhere, 'relative.db')}` } })
  expect(await statusOf(again, 'by the link')).toBe(200)
})

test('writes get 503 after the store file is deleted or replaced, until it is back', async () => {
  const outer = temporaryFolder()
  const folder = join(outer, 'store')
  const relay = await tracedRelayOfTest(outer, { sections: { store: `sqlite:${join(folder, 'relay.db')}` } })
  expect(await statusOf(relay, 'before')).toBe(200)
  for (const name of ['relay.db', 'relay.db-wal']) await expectLossesSeen(relay, join(folder, name))
  // The file cannot come back without its folder.
  rmSync(folder, { recursive: true })
  await expect.poll(() => statusOf(relay, 'without its folder'), { interval: 50, timeout: 60_000 }).toBe(503)
  expect((await readiness(relay)).text).toContain('store_lost: relay.db was deleted')
})

async function expectLossesSeen(relay: TracedRelay, file: string): Promise<void> {
  const ask = await operatorOf(relay)
  for (const fate of ['deleted', 'replaced']) {
    renameSync(file, `${file}.away`)
    if (fate === 'replaced') copyFileSync(`${file}.away`, file)
    await expect.poll(() => statusOf(relay, fate), { interval: 50, timeout: 60_000 }).toBe(503)
    expect(await readiness(relay)).toEqual({ status: 503, text: expect.stringContaining(`store_lost: ${basename(file)} was ${fate}`) })
    expect(await ask('PUT', '/relay/parcels/1001/watch')).toMatchObject({
      status: 503,
      body: { type: expect.stringContaining('storage_unavailable') },
    })
    expect((await ask('GET', '/relay/parcels/1001')).status).toBe(200)
    rmSync(file, { force: true })
    renameSync(`${file}.away`, file)
    await expect.poll(() => statusOf(relay, `after ${basename(file)} was ${fate}`), { interval: 50, timeout: 60_000 }).toBe(200)
    expect((await readiness(relay)).status).toBe(200)
  }
}

const HARMS = [
  ['lost', (file: string) => rmSync(file)],
  ['damaged', (file: string) => writeFileSync(file, 'not a key\n')],
  ['foreign', (file: string) => writeFileSync(file, `${Buffer.alloc(32, 7).toString('base64')}\n`)],
] as const

test.each(HARMS.slice(0, byForm(1, HARMS.length)))(
  'a relay that starts with a %s key file says so, writes no new key, and loses nothing',
  async (_name, harm) => {
    await using receiver = await startWebhookReceiver()
    const folder = temporaryFolder()
    const file = join(folder, 'relay.db.key')
    const first = await tracedRelayOfTest(folder, { sections: RELAYING })
    expect((await (await operatorOf(first))('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).status).toBe(201)
    await stop(first)
    copyFileSync(file, `${file}.kept`)
    harm(file)
    const wasThere = existsSync(file)

    const relay = await tracedRelayOfTest(folder, { sections: RELAYING })
    expect(relay.output()).toContain('Restore relay.db.key')
    expect(await statusOf(relay, 'without the key')).toBe(200)
    const ready = await readiness(relay)
    expect([ready.status, JSON.parse(ready.text)]).toMatchObject([
      200,
      { endpointKeys: { state: 'lost', where: 'relay.db.key', endpoints: 1 } },
    ])
    const ask = await operatorOf(relay)
    const added = await ask('POST', '/relay/endpoints', { name: 'second', url: receiver.url })
    expect([added.status, added.text]).toEqual([503, expect.stringContaining('relay.db.key')])
    expect(existsSync(file)).toBe(wasThere)

    copyFileSync(`${file}.kept`, file)
    await expect.poll(() => receiver.pushes.length, { interval: 50, timeout: 60_000 }).toBe(1)
    expect((await ask('POST', '/relay/endpoints', { name: 'second', url: receiver.url })).status).toBe(201)
    expect(JSON.parse((await readiness(relay)).text)).not.toHaveProperty('endpointKeys')
    expect(relay.process.exitCode).toBeNull()
  },
)
