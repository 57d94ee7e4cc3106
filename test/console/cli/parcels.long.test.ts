import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../../faults/world.ts'
import { answerBody } from '../../support/history/builders.ts'
import { ADMIN } from '../../support/relay/relay.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

const OPERATOR = { RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }

type World = Awaited<ReturnType<typeof startWorld>>

/** One relay for all tests that look only at their own parcels. */
let shared: World
beforeAll(async () => {
  shared = await startWorld()
})
afterAll(() => shared.stop())

/** Returns a function that runs commands against a relay, and the answers of the simulated carrier, which a test may set. */
function start(world = shared) {
  async function run(args: readonly string[], env: NodeJS.ProcessEnv = OPERATOR) {
    const relay = shipped()
    const child = tieToTest(
      spawn(process.execPath, [...relay.args, ...args, '--url', world.internalUrl], {
        ...ownGroup,
        env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: relay.env.NODE_COMPILE_CACHE, ...env },
      }),
    )
    const code = new Promise<number | null>((resolve) => child.on('close', resolve))
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: await code, out, err }
  }
  return { says: world.carrier.says, run }
}

test('parcels are watched, refreshed and shown by commands', async () => {
  const own = await startWorld()
  onTestFinished(() => own.stop())
  const { says, run } = start(own)
  says.set('CLI00001', () => answerBody({ trackingIds: ['95000001'] }))
  expect(await run(['watch', 'cli00001'])).toEqual({ code: 0, out: 'CLI00001: watched, new to the relay\n', err: '' })
  expect(await run(['refresh', 'CLI00001'])).toMatchObject({ code: 0, out: 'CLI00001: recorded (1 of 1)\n' })
  expect((await run(['watch', '95000001'])).out).toBe('95000001: watched, the parcel CLI00001\n')
  expect(await run(['parcels'])).toMatchObject({ out: expect.stringMatching(/\nCLI00001 +95000001 +TerminalArrived /), err: '' })
  expect(JSON.parse((await run(['parcels', '--json'])).out)).toMatchObject({
    parcels: [{ identifiers: ['CLI00001', '95000001'], trackingNumbers: ['CLI00001'] }],
  })
  const shown = await run(['history', '95000001'])
  expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('CLI00001 (tracking number), 95000001 (tracking id)\nnext check 2')])
  expect(shown.out).toMatch(/\nnext check \S+Z \(\w.+\.\)\n/)
  expect(shown.out).toMatch(/TerminalArrived {2}ArrivedT2 {2}Stockholm {2}\[poll \d{4}-\d\d-\d\dT[\d:.]+Z\]\n$/)
  const json = await run(['history', 'CLI00001', '--json'])
  expect(JSON.parse(json.out)).toMatchObject({ entries: 1 })
  expect(await run(['refresh', '--all', '--json'])).toMatchObject({
    code: 0,
    out: '{"identifier":"CLI00001","outcome":"recorded"}\n',
  })
})

test('a file is watched in parts, and bad lines are reported by their number in the file', async () => {
  const { run } = start()
  const file = join(temporaryFolder(), 'many.csv')
  const lines = Array.from({ length: 6000 }, (_, at) => `x,CLF${String(at).padStart(6, '0')}`)
  lines[5500] = 'x,!'
  writeFileSync(file, `order,identifier\n${lines.join('\n')}\n`)
  const { code, out, err } = await run(['watch', '--file', file, '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(out)).toEqual({
    lines: 6001,
    watched: 5999,
    created: 5999,
    failed: 1,
    erased: 0,
    errors: [{ line: 5502, reason: expect.any(String) }],
  })
  expect(err.split('\n').filter((line) => line.includes('watching'))).toEqual(['watching: 6,001 lines'])
})

test('a column of a UTF-16 file is watched, and numbers may have spaces and hyphens', async () => {
  const { says, run } = start()
  says.set('CLU00001SE', () => answerBody({ trackingIds: ['95000002'] }))
  const file = join(temporaryFolder(), 'unicode.csv')
  writeFileSync(file, Buffer.from('\ufeffOrder\tKolli-ID\r\n1\tCLU 000 01 SE\r\n2\tCLU-00002-SE\r\n', 'utf16le'))
  expect(await run(['watch', '--file', file])).toMatchObject({ code: 1, err: expect.stringContaining('"Order", "Kolli-ID"') })
  const watched = await run(['watch', '--file', file, '--column', 'Kolli-ID', '--json'])
  expect([watched.code, JSON.parse(watched.out)]).toEqual([0, { lines: 3, watched: 2, created: 2, failed: 0, erased: 0, errors: [] }])
  expect(await run(['watch', 'clu-000 01\u200b se'])).toMatchObject({ code: 0, out: 'CLU00001SE: watched\n' })
  expect(await run(['refresh', 'CLU 000 01 SE'])).toMatchObject({ code: 0 })
  expect(await run(['history', 'CLU 000 01 SE'])).toMatchObject({ code: 0 })
  expect(await run(['watch', 'CLU00001SE', '--column', 'x'])).toMatchObject({ code: 2 })
})

test('a command exits with 2 if its usage is wrong, and with 1 if it fails', async () => {
  const { run } = start()
  expect((await run(['watch'])).code).toBe(2)
  expect((await run(['refresh', '--all', 'X'])).code).toBe(2)
  const told = await run(['history', 'CLI00001', '--password', 'guess'])
  expect([told.code, told.err]).toEqual([2, expect.not.stringContaining('guess')])
  const nobody = await run(['history', 'CLI00001'], {})
  expect([nobody.code, nobody.err]).toEqual([1, expect.stringContaining('RELAY_PASSWORD')])
  const wrong = await run(['history', 'CLI00001'], { RELAY_USERNAME: 'admin', RELAY_PASSWORD: 'guess' })
  expect([wrong.code, wrong.err]).toEqual([1, expect.not.stringContaining('guess')])
  expect((await run(['history', 'NOBODY01'])).code).toBe(1)
})
