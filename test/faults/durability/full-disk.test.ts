import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { fillUp, smallDisk } from '../../support/store/small-disk.ts'

async function startOnSmallDisk() {
  const disk = smallDisk(40)
  const onCall = await receiverOfTest()
  const folder = temporaryFolder()
  const start = async () => {
    const sections = {
      store: `sqlite:${join(disk, 'relay.db')}`,
      limits: { freeSpaceMin: '8MB' },
      delivery: { schedule: ['200ms'], allowNetworks: ['127.0.0.0/8'] },
      operator: { url: onCall.url, sharedKey: 'the-key-of-the-operators-hook' },
    }
    const relay = await relayOfTest(sections, { folder })
    const statusOf = async (location: string) => (await push(relay.publicUrl, pushBody({ location }))).status
    return { statusOf, lines: relay.lines }
  }
  const told = () => onCall.pushes.map(({ body }): Record<string, unknown> => JSON.parse(String(body)))
  const toldOnce = async (event: string) => {
    await expect.poll(() => told().filter((one) => one.event === event), { timeout: 20_000 }).toHaveLength(1)
    return told().find((one) => one.event === event)
  }
  return { disk, start, toldOnce }
}

testWith('a small file system')('S5: a disk that was full at once is told once there is room, with when it was', async () => {
  const { disk, start, toldOnce } = await startOnSmallDisk()
  const { statusOf, lines } = await start()
  expect(await statusOf('before')).toBe(200)
  const fullFrom = Date.now()
  const ballast = fillUp(disk)
  await expect.poll(() => statusOf('while it is full'), { timeout: 20_000 }).toBe(503)
  // The relay has noticed it and could not store it.
  await expect.poll(() => JSON.stringify(lines), { timeout: 20_000 }).toContain('"subject":"disk full"')
  const fullUntil = Date.now()
  rmSync(ballast)
  const began = await toldOnce('disk_full')
  const ended = await toldOnce('disk_usable')
  const beganMs = Date.parse(String(began?.at))
  expect(Date.parse(String(ended?.since))).toBe(beganMs)
  expect(beganMs).toBeGreaterThanOrEqual(fullFrom)
  expect(beganMs).toBeLessThanOrEqual(fullUntil)
  expect(ended?.refused).toBeGreaterThan(0)
})
