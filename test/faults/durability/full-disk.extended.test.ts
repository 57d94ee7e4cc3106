import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { openUnstoredFile } from '../../../src/console/events/unstored-file.ts'
import { pushBody } from '../../support/history/builders.ts'
import { startSlowPush } from '../../support/network/slow-request.ts'
import { expectedSignature, receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { fillUp, smallDisk } from '../../support/store/small-disk.ts'
import { spawnTraced } from '../../support/store/strace.ts'

const OPS_KEY = 'the-key-of-the-operators-hook'
const LONG = { timeout: 20_000 }

async function startOnSmallDisk() {
  const disk = smallDisk(40)
  const [onCall, shop] = [await receiverOfTest(), await receiverOfTest()]
  const folder = temporaryFolder()
  const start = async () => {
    const sections = {
      store: `sqlite:${join(disk, 'relay.db')}`,
      limits: { freeSpaceMin: '8MB' },
      delivery: { schedule: ['200ms'], allowNetworks: ['127.0.0.0/8'] },
      operator: { url: onCall.url, sharedKey: OPS_KEY },
    }
    const relay = await relayOfTest(sections, { folder })
    const statusOf = async (location: string) => (await push(relay.publicUrl, pushBody({ location }))).status
    const operate = await operatorOf(relay)
    const problem = async (kind: string) => {
      const { problems } = (await operate('GET', '/relay/overview')).body
      return Array.isArray(problems) ? problems.find((one) => one.kind === kind) : undefined
    }
    return { ...relay, statusOf, operate, problem }
  }
  const told = (event: string) =>
    onCall.pushes.map(({ body }): Record<string, unknown> => JSON.parse(String(body))).filter((one) => one.event === event)
  const toldOnce = async (event: string) => {
    await expect.poll(() => told(event), LONG).toHaveLength(1)
    return told(event)[0]
  }
  return { disk, start, shop, onCall, told, toldOnce }
}

/** Sums what tallies count as `storage_unavailable`, because they count each hour for itself, and a test may run over the end of one. */
function unavailableIn(tallies: unknown): number {
  return [...JSON.stringify(tallies).matchAll(/"storage_unavailable":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
}

testWith('a small file system')('S5: a disk that is full at once is told while it is full, once, with when it began', async () => {
  const { disk, start, onCall, told, toldOnce } = await startOnSmallDisk()
  const { statusOf, operate, problem } = await start()
  expect(await statusOf('before')).toBe(200)
  const fullFrom = Date.now()
  const ballast = fillUp(disk)
  const began = await toldOnce('disk_full')
  await toldOnce('disk_low')
  const beganMs = Date.parse(String(began?.at))
  expect(beganMs).toBeGreaterThanOrEqual(fullFrom)
  expect(beganMs).toBeLessThanOrEqual(Date.now())
  const [{ body, headers } = { body: Buffer.of(), headers: {} }] = onCall.pushes
  expect(headers).toMatchObject({ 'x-service-hmac-sha256': expectedSignature(body, OPS_KEY), 'relay-sequence': '0' })
  expect(headers['webhook-id']).toMatch(/_disk_full_/)
  expect(await problem('disk_full')).toMatchObject({ since: began?.at })
  expect(await statusOf('while it is full')).toBe(503)

  rmSync(ballast)
  const ended = await toldOnce('disk_usable')
  await toldOnce('disk_recovered')
  expect(ended).toMatchObject({ since: began?.at, refused: 1, down: [] })
  const { events } = (await operate('GET', '/relay/operator-events')).body
  expect(events).toContainEqual(expect.objectContaining({ event: 'disk_full', at: began?.at }))
  expect([told('disk_full').length, told('disk_low').length]).toEqual([1, 1])
})

testWith('a small file system')('S5: what was refused at a full disk is known to the last push after a stop at it', async () => {
  const { disk, start, told, toldOnce } = await startOnSmallDisk()
  const first = await start()
  expect(await first.statusOf('before')).toBe(200)
  const ballast = fillUp(disk)
  await toldOnce('disk_full')
  for (let at = 0; at < 28; at++) expect(await first.statusOf(`refused ${at}`)).toBe(503)
  const [stoppingMs, , startingMs] = [Date.now(), await first.stop(), Date.now()]
  rmSync(ballast)
  const { operate } = await start()
  expect((await operate('GET', '/relay/overview')).body.pushes).toMatchObject({ refused: [{ cause: 'not_stored', count: 28 }] })
  const ended = await toldOnce('disk_usable')
  const toldMs = Date.now()
  expect(ended).toMatchObject({ refused: 28, down: [expect.anything()] })
  const { down } = JSON.parse(JSON.stringify(ended))
  const times = [stoppingMs, Date.parse(down[0].lastSeenAt), startingMs, Date.parse(down[0].startedAt), toldMs]
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(unavailableIn((await operate('GET', '/relay/tallies?kind=pushes')).body)).toBe(28)
  expect(told('disk_full')).toHaveLength(1)
})

testWith('a small file system')('S5: each full disk counts its own refusals, from the first, also one that is stopped at it', async () => {
  const { disk, start, told, toldOnce } = await startOnSmallDisk()
  const first = await start()
  expect(await first.statusOf('before')).toBe(200)
  const earlier = fillUp(disk)
  const { at: earlierAt } = (await toldOnce('disk_full')) ?? {}
  for (let at = 0; at < 4; at++) expect(await first.statusOf(`refused ${at}`)).toBe(503)
  rmSync(earlier)
  expect(await toldOnce('disk_usable')).toMatchObject({ refused: 4 })

  const ballast = fillUp(disk)
  expect(await first.statusOf('not noticed yet')).toBe(503)
  const firstMs = Date.now()
  // A receiver may be posted the same event again, because its answer could not be stored.
  const beganAt = () => told('disk_full').find(({ at }) => at !== earlierAt)?.at
  await expect.poll(beganAt, LONG).toBeDefined()
  expect(await first.statusOf('noticed')).toBe(503)
  await first.stop()
  rmSync(ballast)
  await start()
  const ended = () => told('disk_usable').find(({ since }) => since === beganAt())
  await expect.poll(ended, LONG).toMatchObject({ refused: 2 })
  expect(Date.parse(String(beganAt()))).toBeLessThanOrEqual(firstMs)
})

testWith('a small file system')('S5: pushes that are refused while the relay stops at a full disk are counted too', async () => {
  const { disk, start, told, toldOnce } = await startOnSmallDisk()
  const first = await start()
  expect(await first.statusOf('before')).toBe(200)
  const ballast = fillUp(disk)
  await toldOnce('disk_full')
  expect(await first.statusOf('refused')).toBe(503)
  const slow = await startSlowPush(first.publicUrl, String(pushBody()))
  const stopped = first.stop()
  let refused = 2
  const late = async () => {
    const status = await first.statusOf('too late').catch(() => 'closed')
    if (status === 503) refused++
    return status
  }
  await expect.poll(late).toBe('closed')
  expect(await slow.finish()).toContain('HTTP/1.1 503')
  await stopped
  rmSync(ballast)
  const { operate } = await start()
  await expect.poll(() => told('disk_usable')[0], LONG).toMatchObject({ refused })
  expect((await operate('GET', '/relay/overview')).body.pushes).toMatchObject({ refused: [{ cause: 'not_stored', count: refused }] })
  expect(unavailableIn((await operate('GET', '/relay/tallies?kind=pushes')).body)).toBe(refused)
})

testWith('a small file system')('S5: a kill at a full disk loses no counts that have lain there for some seconds', async () => {
  const disk = smallDisk(40)
  const folder = temporaryFolder()
  const store = join(disk, 'relay.db')
  const start = () => spawnTraced(folder, { sections: { store: `sqlite:${store}`, limits: { freeSpaceMin: '8MB' } } })
  const first = await start()
  expect((await push(first.publicUrl, pushBody())).status).toBe(200)
  const ballast = fillUp(disk)
  for (let at = 0; at < 28; at++) expect((await push(first.publicUrl, pushBody({ location: `${at}` }))).status).toBe(503)
  const file = openUnstoredFile(store)
  const saved = () => [JSON.stringify(file.read()).includes('"count":28'), unavailableIn(file.read())]
  await expect.poll(saved, LONG).toEqual([true, 28])
  await first.kill()
  rmSync(ballast)
  const second = await start()
  onTestFinished(() => second.kill())
  const operate = await operatorOf(second)
  expect((await operate('GET', '/relay/overview')).body.pushes).toMatchObject({ refused: [{ cause: 'not_stored', count: 28 }] })
  expect(unavailableIn((await operate('GET', '/relay/tallies?kind=pushes')).body)).toBe(28)
})

testWith('a small file system')('S5: at a disk without a free byte, status says that webhooks wait, and they go on', async () => {
  const { disk, start, shop } = await startOnSmallDisk()
  const { statusOf, operate, problem } = await start()
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: shop.url })
  shop.answer(() => 500)
  expect(await statusOf('before')).toBe(200)
  await expect.poll(() => shop.pushes.length).toBeGreaterThan(0)
  const ballast = fillUp(disk)
  await expect.poll(() => problem('deliveries_unwritten'), LONG).toMatchObject({ severity: 'problem', since: expect.any(String) })
  shop.answer(() => 200)
  rmSync(ballast)
  await expect.poll(async () => (await operate('GET', `/relay/endpoints/${String(body.id)}`)).body, LONG).toMatchObject({ waiting: 0 })
  expect(await problem('deliveries_unwritten')).toBeUndefined()
})
