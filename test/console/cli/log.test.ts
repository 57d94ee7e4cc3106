import { spawn } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createSecret } from '../../../src/core/config/secret.ts'
import { AppError, StorageFailure } from '../../../src/core/domain/errors.ts'
import { createForwardedLog, createLog, type LogLine, type LogOptions } from '../../../src/core/ops/log.ts'
import { asError } from '../../../src/core/runtime/threads/thread.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import { CANARY } from './config-cases.ts'

function capture(level: LogOptions['level'] = 'debug') {
  const lines: string[] = []
  const log = createLog({ level, destination: { write: (line) => void lines.push(line) } })
  return { log, lines, last: (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? '{}') }
}

function logged(fields: object, message = 'happened'): Record<string, unknown> {
  const { log, last } = capture()
  log.info(fields, message)
  return last()
}

describe('log lines', () => {
  test('are JSON with level as text and time as ISO 8601', () => {
    const { log, lines } = capture()
    log.warn({ requestId: 'r-1', port: 8080 }, 'relay ready')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(
      /^\{"level":"warn","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","requestId":"r-1","port":8080,"msg":"relay ready"\}\n$/,
    )
  })

  test('below the level are not written', () => {
    const { log, lines } = capture('warn')
    log.debug({}, 'a')
    log.info({}, 'b')
    log.warn({}, 'c')
    log.error({}, 'd')
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['c', 'd'])
  })

  test('sent through another thread are the same, even errors and values that cannot be cloned', () => {
    const fields = { err: new Error('broken', { cause: new Error('deep') }), password: 'x', act: () => {}, level: 'mine' }
    const { log, lines } = capture('info')
    const forwarded = createForwardedLog('warn', (line) => {
      const { level, fields: told, message }: LogLine = structuredClone(line)
      log[level](told, message)
    })
    for (const one of [log, forwarded]) one.warn(fields, 'happened at postgres://me:secret@host')
    forwarded.info({}, 'too little for it')
    const [direct, travelled, ...others] = lines.map((line) => ({ ...JSON.parse(line), time: null }))
    expect([travelled, others]).toEqual([direct, []])
    expect(direct).toMatchObject({ level: 'warn', err: { type: 'Error', message: 'broken: deep' }, password: '[redacted]' })
  })

  test('keep their own level, time and message whatever the fields are', () => {
    const line = logged({ level: 'x', time: 1, msg: 'y' })
    expect(line).toMatchObject({ level: 'info', msg: 'happened', level_: 'x', time_: 1, msg_: 'y' })
  })

  test('are one line each, whatever the text contains', () => {
    const { log, lines } = capture()
    log.info({ text: 'a\nb\u2028' }, 'c\r\nd %s %o')
    expect(lines.join('').trimEnd()).not.toMatch(/[\r\n]/)
    expect(JSON.parse(lines[0] ?? '').msg).toBe('c\r\nd %s %o')
  })
})

describe('redaction', () => {
  test.each([
    'password',
    'token',
    'authorization',
    'sharedKey',
    'secret',
    'x-service-hmac-sha256',
    'Authorization',
    'access_token',
    'passwordHash',
    'sharedKeys',
    'set-cookie',
  ])('C4: masks %s at any depth', (name) => {
    let fields: object = { [name]: CANARY }
    for (let depth = 0; depth < 12; depth++) {
      expect(JSON.stringify(logged(fields))).not.toContain(CANARY)
      expect(JSON.stringify(logged(fields))).toContain(depth < 6 ? '[redacted]' : '[deep]')
      fields = depth % 2 === 0 ? { deep: fields } : { list: [fields] }
    }
  })

  test('C4: masks everything below a secret name, and secrets in maps and raw headers', () => {
    const line = logged({
      token: { value: CANARY },
      map: new Map([['password', CANARY]]),
      rawHeaders: ['Host', 'a', 'X-Service-HMAC-SHA256', CANARY],
      settings: ['upstream.password', 'delivery.jitter'],
      wrapped: { key: createSecret(CANARY) },
    })
    expect(JSON.stringify(line)).not.toContain(CANARY)
    expect(line).toMatchObject({ settings: ['upstream.password', 'delivery.jitter'] })
    expect(line).toMatchObject({ wrapped: { key: '[redacted]' }, rawHeaders: ['Host', 'a', 'X-Service-HMAC-SHA256', '[redacted]'] })
  })

  test('C4: logs only type, message, stack, code and cause of an error', () => {
    const cause = Object.assign(new TypeError('inner'), { config: { auth: CANARY }, code: 'ERR_INNER' })
    const error = Object.assign(new Error('outer', { cause }), { body: CANARY, request: { headers: { a: CANARY } }, status: 500 })
    for (const line of [logged({ error }), logged({ deep: { err: error } }), logged(error)])
      expect(JSON.stringify(line)).not.toContain(CANARY)
    expect(logged({ error }).error).toEqual({
      type: 'Error',
      message: 'outer',
      stack: expect.stringContaining('Error: outer'),
      cause: { type: 'TypeError', message: 'inner', stack: expect.stringContaining('TypeError: inner'), code: 'ERR_INNER' },
    })
  })

  test.each([
    ['an expected failure', new AppError('not_movable', 'The store is being moved.')],
    ['a full disk of SQLite', Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })],
    ['a full disk that another thread has met', asError(Object.assign(new Error('database is full'), { code: 'SQLITE_FULL' }))],
    ['a full disk', Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })],
    ['a store that is gone', new StorageFailure('The database does not answer.')],
  ])('%s is logged without a stack, but a bug that caused it is logged with its stack', (_name, error) => {
    for (const level of ['err', 'error']) expect(JSON.stringify(logged({ [level]: error }))).not.toContain('stack')
    expect(logged({ err: error }).err).toMatchObject({ message: error.message })
    const caused = Object.assign(error, { cause: new TypeError('a bug') })
    expect(logged({ err: caused }).err).toMatchObject({
      message: `${error.message}: a bug`,
      stack: expect.stringMatching(/^caused by: TypeError: a bug\n/),
    })
  })

  test('C4: masks credentials inside text', () => {
    const header = `Bearer ${CANARY}`
    const address = `postgres://relay:${CANARY}@db/relay`
    const line = logged({ error: new Error(`no ${address}`), header, address }, `got ${header} from ${address}`)
    expect(JSON.stringify(line)).not.toContain(CANARY)
    expect(line.address).toBe('postgres://[redacted]@db/relay')
  })

  test('C4: logs the size of bytes, but not the bytes', () => {
    expect(logged({ body: Buffer.from(CANARY), view: new Uint8Array(3) })).toMatchObject({ body: '[24 bytes]', view: '[3 bytes]' })
  })

  test('C4: accepts any value without failing', () => {
    const circular: Record<string, unknown> = {
      n: 1n,
      f: () => 0,
      u: undefined,
      nan: Number.NaN,
      bad: new Date(Number.NaN),
      long: 'x'.repeat(100_000),
    }
    circular.self = circular
    const selfCaused: Error & { cause?: unknown } = new Error('loop')
    selfCaused.cause = selfCaused
    const hostile = {
      get boom(): string {
        throw new Error(CANARY)
      },
    }
    const line = logged({ circular, selfCaused, hostile, list: Array.from({ length: 1000 }, () => 1) })
    expect(line).toMatchObject({ circular: { n: '1', f: '[function]', nan: 'NaN', self: '[circular]' }, hostile: { boom: '[unreadable]' } })
    expect(JSON.stringify(line).length).toBeLessThan(10_000)
  })
})

describe('standard output', () => {
  const program = `import { createLog } from './src/core/ops/log.ts'
    const log = createLog({ level: 'info' })
    process.stdin.once('data', () => {
      for (let i = 0; i < 100; i++) log.info({ i, text: 'x'.repeat(1000) }, 'line')
      setImmediate(() => { log.info({}, 'later'); process.exitCode = 7; process.stdin.destroy() })
    })
    process.stderr.write('up')`

  async function exitOf(stdout: 'pipe' | number): Promise<{ readonly code: number | null; readonly err: string }> {
    const child = tieToTest(
      spawn(process.execPath, ['--input-type=module', '-e', program], { ...ownGroup, stdio: ['pipe', stdout, 'pipe'] }),
    )
    let err = ''
    child.stderr?.on('data', (chunk) => {
      err += chunk
      if (child.stdout === null) child.stdin?.end('go')
      else child.stdout.once('close', () => child.stdin?.end('go')).destroy()
    })
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
    return { code, err }
  }

  test('C4: does not end the process when its reader has gone (EPIPE)', async () => {
    expect(await exitOf('pipe')).toEqual({ code: 7, err: 'up' })
  })

  test.skipIf(!existsSync('/dev/full'))('C4: does not end the process on a full disk (ENOSPC)', async () => {
    expect(await exitOf(openSync('/dev/full', 'w'))).toEqual({ code: 7, err: 'up' })
  })
})
