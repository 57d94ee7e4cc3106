import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, vi } from 'vitest'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { blockUnder, type FencedBlock, fencedBlocks } from '../support/runner/documented.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { addressOf, startDemo } from '../trial/demo/demo-process.ts'

const PAGE = 'docs/integrating.md'
/** documented-receiver.extended.test.ts runs these receivers. */
const OTHER_RECEIVERS = ['Python', 'Bash']
/** A person pastes slowly enough for the receiver to start, but a script has to wait. */
const UNTIL_LISTENING = 'curl -sS -o /dev/null --retry 60 --retry-connrefused --retry-delay 1 "http://127.0.0.1:$PORT/" 2> /dev/null\n'

/** A person waits until the event arrives. The test waits too, and then sends a line that ends this `read`. */
const UNTIL_ARRIVED = 'echo "the new key is $ENDPOINT_KEY"\nread -r _\n'

/** Joins the shell lines of the page into one script, and replaces the given words in it. */
function pastedLines(words: Readonly<Record<string, string>>): string {
  const blocks = fencedBlocks(PAGE).filter(({ heading, language }) => language === 'sh' && !OTHER_RECEIVERS.includes(heading))
  const linesOf = ({ heading, text }: FencedBlock) => {
    if (text.includes('receiver.mjs')) return text + UNTIL_LISTENING
    return heading === 'When you are done' ? `${UNTIL_ARRIVED}${text}` : text
  }
  const script = blocks.map(linesOf).join('')
  return Object.entries(words).reduce((text, [documented, own]) => {
    if (!text.includes(documented)) throw new Error(`${PAGE} does not say ${documented}`)
    return text.replaceAll(documented, own)
  }, script)
}

/** Runs a script in bash, in a folder that has only the programs of the page. */
function paste(script: string) {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'follow.mjs'), blockUnder(PAGE, 'Follow the feed', 'js'))
  writeFileSync(join(folder, 'receiver.mjs'), blockUnder(PAGE, 'Node', 'js'))
  const env = { PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` }
  const child = tieToTest(spawn('bash', ['-euo', 'pipefail', '-c', script], { ...ownGroup, cwd: folder, env, stdio: 'pipe' }))
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', (line) => lines.push(line))
  return { lines, child }
}

testWith(
  'bash',
  'curl',
  'openssl',
)('the lines of docs/integrating.md lead an app from nothing to a verified push', async () => {
  const demo = startDemo(['--free-ports', '--parcels', '6', '--seconds', '3'])
  await demo.said('histories are complete')
  const parcel = /\/v1\/status\/(\w+)\/latest/.exec(demo.lines.join('\n'))?.[1] ?? ''
  const port = await freePort()
  const script = pastedLines({
    'http://127.0.0.1:8081': addressOf(demo.lines, 'relay, internal'),
    'http://127.0.0.1:8090': addressOf(demo.lines, 'sandbox carrier'),
    AB123456789SE: parcel,
    'PORT=9000': `PORT=${port}`,
  })
  const { lines, child } = paste(script)
  const said = (pattern: RegExp) => vi.waitFor(() => expect(lines.join('\n')).toMatch(pattern))

  await said(/^the new key is \S{40,}$/m)
  expect(lines.join('\n')).toMatch(/^\{"status":\{.*\n\{.*"statuses":\[.*\n304\ncache-status: parcel-relay; hit\nage: \d+$/im)
  expect(lines.join('\n')).toMatch(/^\{"events":\[\{.*"next":\d+,"relay":"[0-9a-f]+"\}$/m)
  expect(lines.find((line) => line.includes('"status":204'))).toBeDefined()
  expect(lines.find((line) => line.startsWith('{"deliveries":['))).toBeDefined()
  // The carrier's new event arrives in the feed and as a push, with the same sequence. The endpoint may be sent others before: what the carrier was late with.
  const sequences = (pattern: RegExp) => [...lines.join('\n').matchAll(pattern)].map(([, sequence]) => sequence)
  await vi.waitFor(() => {
    const inFeed = sequences(/^(\d+) entry \d+ TerminalUpdated$/gm)
    const stored = sequences(/stored (\d+)$/gm)
    expect(
      stored.filter((sequence) => inFeed.includes(sequence)),
      lines.join('\n'),
    ).toHaveLength(1)
  })
  child.stdin.write('\n')
  expect(await once(child, 'close')).toEqual([0, null])
})
