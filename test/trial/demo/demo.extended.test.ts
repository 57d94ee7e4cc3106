import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { ask, logIn } from '../../support/relay/relay.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { addressOf, startDemo } from './demo-process.ts'

const run = promisify(execFile)

/** Pastes lines into a shell as they were printed, and fails if any command fails. */
async function paste(lines: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await run('bash', ['-c', ['set -eo pipefail', ...lines].join('\n')])
  return stdout.trimEnd().split('\n')
}

async function countEntries(internalUrl: string): Promise<number> {
  const response = await ask(internalUrl, await logIn(internalUrl), '/relay/events?after=0&limit=500')
  return [...(await response.text()).matchAll(/"kind":"entry"/g)].length
}

testWith(
  'bash',
  'curl',
  'openssl',
)('the demo shows its addresses, completes every history, and leaves nothing after Ctrl-C', async () => {
  const demo = startDemo(['--free-ports', '--parcels', '6', '--seconds', '3'])
  await demo.said('Ctrl-C ends the demo.')
  const [publicUrl, internalUrl, carrierUrl, subscriberUrl] = ['relay, public', 'relay, internal', 'sandbox carrier', 'subscriber  '].map(
    (name) => addressOf(demo.lines, name),
  )
  expect(new Set([publicUrl, internalUrl, carrierUrl, subscriberUrl, '']).size).toBe(5)
  expect(demo.lines.join('\n')).toMatch(/shop \/ shop-demo-password .*\n.* admin \/ admin-demo-password/)
  expect(readdirSync(demo.folder)).toHaveLength(1)

  const printed = demo.between('Paste into another terminal', 'Ctrl-C ends the demo.')
  const [latest = '', all = '', ready = '', ...rest] = await paste(printed)
  expect(JSON.parse(latest)).toMatchObject({ status: { status: expect.any(String), eventTimestamp: expect.any(String) } })
  expect(JSON.parse(all)).toMatchObject({ statuses: expect.arrayContaining([expect.objectContaining({ status: expect.any(String) })]) })
  expect(JSON.parse(ready)).toMatchObject({ status: 'ready' })
  const [status, mine = ''] = rest.slice(-2)
  expect(rest.slice(0, -2).join('\n')).toMatch(/^relay_pushes_received_total\{outcome="recorded",key="0"\} \d+$/m)
  expect(status).toBe('200')
  expect(JSON.parse(mine)).toMatchObject({ status: { location: 'Kiruna', consumerDescription: 'Pushed by hand' } })

  await demo.said('All 6 histories are complete')
  await demo.said('The parcels have the order numbers ORDER-1001 to ORDER-1006')
  await demo.said('Watchdogs: ')
  const counts = () =>
    /lost by the carrier (\d+) · gaps filled by polls (\d+)/.exec(demo.lines.findLast((line) => line.includes('6/6')) ?? '') ?? []
  expect(Number(counts()[1])).toBeGreaterThan(0)
  // In a complete history, polls have filled the gap of each lost push.
  expect(counts()[2]).toBe(counts()[1])
  const said = demo.lines.join('\n')
  expect(said).toMatch(/^subscriber got +[A-Z0-9]+ {2}\w+( in \S+)?, signature valid$/m)
  expect(said).not.toContain('with a wrong signature')
  // The subscriber gets every entry of the feed, whether it came by push, by poll or by hand.
  await demo.said(`sent to the subscriber ${await countEntries(internalUrl ?? '')}`)

  const more = demo.lines.slice(demo.lines.findIndex((line) => line.includes('only a poll can find that event')) + 2)
  const commands = more.slice(0, more.indexOf(''))
  const before = await countEntries(internalUrl ?? '')
  const [scanned = '', faults = '', ...metrics] = await paste(commands)
  expect([JSON.parse(scanned), JSON.parse(faults)]).toMatchObject([{ done: true }, { silence: true }])
  expect(metrics.join('\n')).toMatch(/^relay_polls_total\{outcome="found"\} \d+$/m)
  const arrived = (count: number) => expect.poll(() => countEntries(internalUrl ?? '')).toBe(before + count)
  await arrived(1)
  await paste(commands.slice(0, 2))
  await arrived(2)

  demo.child.kill('SIGINT')
  demo.child.kill('SIGINT')
  expect(await demo.ended).toEqual([0, null])
  expect(demo.isAlone()).toBe(true)
  for (const url of [publicUrl, internalUrl, carrierUrl, subscriberUrl]) await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})
