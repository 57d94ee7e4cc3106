import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { push, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { blockUnder } from '../support/runner/documented.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

/** Starts the reader of the feed in docs/integrating.md, which saves its position in the folder. */
function startReader(folder: string, internalUrl: string) {
  writeFileSync(join(folder, 'follow.mjs'), blockUnder('docs/integrating.md', 'Follow the feed', 'js'))
  const env = { RELAY: internalUrl, USERNAME: SHOP.username, PASSWORD: SHOP.password }
  const child = tieToTest(spawn(process.execPath, ['follow.mjs'], { ...ownGroup, cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }))
  const [lines, errors]: [string[], string[]] = [[], []]
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  createInterface(child.stderr).on('line', (line) => errors.push(line))
  const ended = once(child, 'close')
  const stop = async () => {
    child.kill()
    await ended
  }
  return { lines, errors, ended, stop }
}

const statusesIn = (lines: readonly string[]) => lines.map((line) => line.split(' ').at(-1))

test('the documented reader of the feed resumes at its position, or says why it cannot', async () => {
  const relay = await relayOfTest()
  const folder = temporaryFolder()
  await push(relay.publicUrl, pushBody({ status: 'Created', eventTime: '2026-03-01T10:00:00.000Z' }))
  const first = startReader(folder, relay.internalUrl)
  await vi.waitFor(() => expect(statusesIn(first.lines)).toEqual(['Created']))
  await push(relay.publicUrl, pushBody({ status: 'Ingested', eventTime: '2026-03-01T11:00:00.000Z' }))
  await vi.waitFor(() => expect(statusesIn(first.lines)).toEqual(['Created', 'Ingested']))
  const [sequence] = (first.lines.at(-1) ?? '').split(' ')
  await vi.waitFor(() => expect(readFileSync(join(folder, 'position.txt'), 'utf8')).toBe(sequence))
  await first.stop()

  await push(relay.publicUrl, pushBody({ status: 'DeliveryStarted', eventTime: '2026-03-01T12:00:00.000Z' }))
  const second = startReader(folder, relay.internalUrl)
  await vi.waitFor(() => expect(statusesIn(second.lines)).toEqual(['DeliveryStarted']))
  expect([first.errors, second.errors]).toEqual([[], []])
  await second.stop()

  // The store has not reached this position, as after a restore from a backup.
  writeFileSync(join(folder, 'position.txt'), '1000000')
  const third = startReader(folder, relay.internalUrl)
  expect(await third.ended).toEqual([1, null])
  expect(third.errors.join('\n')).toMatch(/^The last sequence is 3: .*docs\/feed\.md/)
})
