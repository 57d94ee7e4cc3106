import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { parseOptions, verify } from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { shipped } from '../../support/runner/shipped.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import { CANARY, fileOf, HASH, minimal, withLines } from './config-cases.ts'

interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

type Name = 'config' | 'hash-password' | 'generate-key'

async function run(name: Name, args: readonly string[], input = '', env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const relay = shipped()
  const child = tieToTest(
    spawn(process.execPath, [...relay.args, name, ...args], {
      ...ownGroup,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: relay.env.NODE_COMPILE_CACHE, ...env },
    }),
  )
  // Some tests run a command that ends before it has read its input.
  child.stdin.on('error', () => undefined).end(input)
  const code = new Promise<number | null>((resolve) => child.on('close', resolve))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await code, out, err }
}

describe('config print', () => {
  test('C3: prints the settings in effect without secrets, as YAML and as JSON', async () => {
    const file = fileOf(withLines(`apps: [{ username: shop, passwordHash: "${HASH}", scopes: [status] }]`), 'print.yaml')
    const [yaml, json] = await Promise.all([
      run('config', ['print', '--config', file]),
      run('config', ['print', '--json', '--config', file]),
    ])
    expect([yaml.code, json.code]).toEqual([0, 0])
    expect(yaml.out).toContain('shutdownTimeout: 10s\n')
    expect(JSON.parse(json.out)).toMatchObject({ shutdownTimeout: '10s', upstream: { username: 'acme', password: '[redacted]' } })
    for (const text of [yaml.out, yaml.err, json.out, json.err]) {
      expect(text).not.toContain(CANARY)
      expect(text).not.toContain(HASH)
    }
  })

  test('C2: exits with 1 and lists every problem on standard error', async () => {
    const file = fileOf(withLines('log: { level: loud }', 'logg: 1'), 'bad.yaml')
    const { code, out, err } = await run('config', ['print', '--config', file])
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('bad.yaml:3:15 log.level: must be one of debug, info, warn, error\n')
    expect(err).toContain('bad.yaml:4:1 logg: is not a known key; did you mean log?\n')
    expect(err).toMatch(/the config has 2 problems\n$/)
  })

  test('I9: prints warnings on standard error and still succeeds', async () => {
    const file = fileOf(minimal.replace(CANARY, '{ env: KEY }'), 'weak.yaml')
    const { code, err } = await run('config', ['print', '--config', file], '', { KEY: 'short' })
    expect(code).toBe(0)
    expect(err).toMatch(/^warning: .*weak\.yaml:1:25 webhook\.sharedKeys\[0\]: is shorter than 16 bytes/)
  })

  test('prints the schema', async () => {
    const { code, out } = await run('config', ['schema'])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema', required: ['webhook', 'upstream'] })
  })

  test.each([[[]], [['prnt']], [['print', '--jsn']], [['print', 'extra']], [['print', '--config']]])(
    'exits with 2 when called as config %j',
    async (args) => {
      const { code, out } = await run('config', args)
      expect([code, out]).toEqual([2, ''])
    },
  )

  test('exits with 0 when asked for help', async () => {
    expect(await run('config', ['print', '--help'])).toMatchObject({ code: 0, out: expect.stringContaining('secrets are masked') })
  })
})

describe('hash-password', () => {
  test('hashes the text from standard input, except for a newline at its end', async () => {
    const { code, out } = await run('hash-password', [], `${CANARY}\n`)
    expect(code).toBe(0)
    expect(parseOptions(out.trim())).toMatchObject({ memoryCost: 19_456, timeCost: 2, parallelism: 1 })
    expect(out).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$\S+\n$/)
    expect(await verify(out.trim(), CANARY)).toBe(true)
  })

  test.each(['', '\n', '  \n', 'x'.repeat(5000)])('exits with 1 if the input is not a usable password (%#)', async (input) => {
    const { code, out, err } = await run('hash-password', [], input)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^hash-password: the password is /)
  })

  test('warns of a password under 12 characters, and hashes it all the same', async () => {
    const [short, long] = [await run('hash-password', [], 'short'), await run('hash-password', [], 'x'.repeat(12))]
    expect([short.code, short.err]).toEqual([
      0,
      expect.stringMatching(/^hash-password: warning: the password has fewer than 12 characters/),
    ])
    expect(await verify(short.out.trim(), 'short')).toBe(true)
    expect([long.code, long.err]).toEqual([0, ''])
  })

  test('C3: accepts no password as an argument, and does not repeat it', async () => {
    const attempts = [[CANARY], [`--password=${CANARY}`], ['--password', CANARY]].map((args) => run('hash-password', args))
    for (const { code, out, err } of await Promise.all(attempts)) {
      expect([code, out]).toEqual([2, ''])
      expect(err).toBe('hash-password: takes no arguments; it prompts for the password or reads standard input\n')
    }
  })

  test('warns a person who types without a terminal that the password is visible', async () => {
    const relay = shipped()
    const child = tieToTest(spawn(process.execPath, [...relay.args, 'hash-password'], { ...ownGroup, env: relay.env }))
    await new Promise<void>((resolve) => child.stderr.once('data', () => resolve()))
    child.stdin.end(`${CANARY}\n`)
    expect(await verify((await text(child.stdout)).trim(), CANARY)).toBe(true)
  })
})

describe('generate-key', () => {
  test('prints 32 random bytes in Base64, different each time', async () => {
    const runs = await Promise.all([run('generate-key', []), run('generate-key', [])])
    for (const { code, out } of runs) {
      expect(code).toBe(0)
      expect(Buffer.from(out.trimEnd(), 'base64')).toHaveLength(32)
      expect(out).toMatch(/^[A-Za-z0-9+/]{43}=\n$/)
    }
    expect(runs[0].out).not.toBe(runs[1].out)
  })
})
