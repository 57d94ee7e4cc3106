import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makePipe } from '../support/network/named-pipe.ts'
import { postJson } from '../support/relay/moves-of-relay.ts'
import { ADMIN, logIn, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

async function serve(config: string): Promise<{ readonly code: number | null; readonly said: string }> {
  const { args, env } = shipped()
  const child = tieToTest(
    spawn(process.execPath, [...args, 'serve', '--config', config], { ...ownGroup, stdio: ['ignore', 'ignore', 'pipe'], env }),
  )
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  return await new Promise((resolve) => child.once('close', (code) => resolve({ code, said })))
}

/** `npm test` takes only the store and one file beside it. */
const FILES = byForm(['relay.db', 'relay.db.key'], ['relay.db', 'relay.db-wal', 'relay.db.marker', 'relay.db.lock', 'relay.db.key'])
const PIPE = 'it is a named pipe'

describe('C1, S8: the start ends and names what it cannot open, instead of hanging:', () => {
  test.each(FILES)(
    'a named pipe in place of %s',
    async (name) => {
      const folder = temporaryFolder()
      makePipe(join(folder, name))
      const { code, said } = await serve(writeConfig(folder, NO_CARRIER))
      expect([code, said]).toEqual([1, expect.stringContaining(join(folder, 'relay.db'))])
      expect(said).toContain(PIPE)
    },
    60_000,
  )

  test('a named pipe in place of the config', async () => {
    const config = makePipe(join(temporaryFolder(), 'relay.yaml'))
    expect(await serve(config)).toEqual({
      code: 1,
      said: expect.stringContaining(`${config}:1:1 the config file cannot be read (${PIPE})`),
    })
  }, 60_000)

  test('a named pipe in place of a secret', async () => {
    const folder = temporaryFolder()
    const file = makePipe(join(folder, 'key'))
    const { code, said } = await serve(writeConfig(folder, NO_CARRIER, { webhook: { sharedKeys: [{ file }] } }))
    expect([code, said]).toEqual([1, expect.stringContaining(`names the file ${file}, which cannot be read (${PIPE})`)])
  }, 60_000)

  test('a named pipe in place of a certificate', async () => {
    const folder = temporaryFolder()
    const certFile = makePipe(join(folder, 'cert.pem'))
    const tls = { certFile, keyFile: join(folder, 'key.pem') }
    const { code, said } = await serve(writeConfig(folder, NO_CARRIER, { listen: { public: { host: '127.0.0.1', port: 0, tls } } }))
    expect([code, said]).toEqual([1, expect.stringContaining(`listen.public.tls.certFile: ${certFile} cannot be read (${PIPE})`)])
  }, 60_000)

  test('a folder that cannot be made', async () => {
    const { code, said } = await serve(writeConfig(temporaryFolder(), NO_CARRIER, { store: 'sqlite:/proc/nope/deep/x.db' }))
    expect([code, said]).toEqual([
      1,
      expect.stringContaining('store: /proc/nope/deep/x.db cannot be opened for writing: there is no such file or folder'),
    ])
  }, 60_000)
})

test('X1: a move to a path that hangs is refused, and a later stop exits with 0', async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'a'))
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { store: `sqlite:${join(folder, 'a/b/c/relay.db')}` }))
  expect(existsSync(join(folder, 'a/b/c/relay.db'))).toBe(true)
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  const pipe = makePipe(join(folder, 'pipe.db'))
  for (const [place, why] of [
    [pipe, PIPE],
    ['/proc/nope/x.db', 'there is no such file or folder'],
  ] as const) {
    expect(await postJson(asker, '/relay/store/move', { to: `sqlite:${place}` })).toMatchObject({
      status: 409,
      body: { detail: expect.stringMatching(new RegExp(`${place}.*${why}`)) },
    })
  }
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
}, 120_000)

test('a file in place of a folder of the store is named at the start', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'file'), '')
  const { code, said } = await serve(writeConfig(folder, NO_CARRIER, { store: `sqlite:${join(folder, 'file/b/relay.db')}` }))
  expect([code, said]).toEqual([1, expect.stringContaining('a part of its path is not a folder')])
}, 120_000)
