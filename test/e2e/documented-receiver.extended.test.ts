import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { blockUnder } from '../support/runner/documented.ts'
import type { Tool } from '../support/runner/system-tools.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { storedRows } from '../support/store/stored-rows.ts'

const PAGE = 'docs/integrating.md'
const KEY = 'the-key-of-the-documented-receiver'

interface Documented {
  readonly heading: string
  readonly language: string
  readonly file: string
  readonly tools: readonly Tool[]
  /** Reads the bodies that the receiver stored, in the order of their sequences. */
  readonly stored: (folder: string) => Promise<readonly string[]>
  /** Reads the time of the event that decided the current status of the parcel. */
  readonly current: (folder: string) => Promise<string>
}

async function inDatabase(folder: string): Promise<readonly string[]> {
  const rows = await storedRows<{ readonly body: string }>(join(folder, 'events.db'), 'select body from event order by sequence')
  return rows.map(({ body }) => body)
}

async function timeInDatabase(folder: string): Promise<string> {
  const [row] = await storedRows<{ readonly time: string }>(join(folder, 'events.db'), 'select time from parcel')
  return `${row?.time ?? ''}Z`
}

async function timeInFiles(folder: string): Promise<string> {
  const [name = ''] = readdirSync(join(folder, 'parcels'))
  return `${readFileSync(join(folder, 'parcels', name), 'utf8').split(' ')[0] ?? ''}Z`
}

async function inFiles(folder: string): Promise<readonly string[]> {
  const names = readdirSync(join(folder, 'events')).filter((name) => name.endsWith('.json'))
  return names
    .toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((name) => readFileSync(join(folder, 'events', name), 'utf8'))
}

const RECEIVERS: readonly Documented[] = [
  { heading: 'Node', language: 'js', file: 'receiver.mjs', tools: [], stored: inDatabase, current: timeInDatabase },
  { heading: 'Python', language: 'python', file: 'receiver.py', tools: ['python3'], stored: inDatabase, current: timeInDatabase },
  { heading: 'Bash', language: 'bash', file: 'receiver.sh', tools: ['openssl', 'socat'], stored: inFiles, current: timeInFiles },
]

/** Makes a folder that has only the receiver's file. `startWith` starts the receiver there, with the command of the page. */
async function startReceiver({ heading, language, file }: Documented) {
  const [folder, port] = [temporaryFolder(), await freePort()]
  writeFileSync(join(folder, file), blockUnder(PAGE, heading, language))
  const command = `${blockUnder(PAGE, heading, 'sh')}wait`
  const complaints: string[] = []
  const startWith = (key: string) => {
    const env = { ENDPOINT_KEY: key, PORT: String(port), PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` }
    const child = tieToTest(spawn('bash', ['-c', command], { ...ownGroup, cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] }))
    child.stderr.on('data', (said) => complaints.push(String(said)))
    return async () => {
      if (child.pid !== undefined) process.kill(-child.pid)
      await once(child, 'exit')
    }
  }
  const isListening = async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
  }
  const url = `http://127.0.0.1:${port}/`
  /** Opens a connection and resets it, as the relay does with a connection that it does not need. */
  const resetUnused = async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.resetAndDestroy()
    await once(socket, 'close')
  }
  return { folder, url, startWith, resetUnused, complaints, listens: () => vi.waitFor(isListening) }
}

const minute = (nth: number) => `2026-03-01T10:0${nth}:00.000Z`
const EVENTS = Array.from({ length: 6 }, (_, nth) => pushBody({ eventTime: minute(nth), location: `Åre ${nth}` }).toString())
const [first = '', second = '', third = '', fourth = '', fifth = '', unsigned = ''] = EVENTS

async function startEndpoint(url: string) {
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'documented', url, sharedKey: KEY })
  const path = `/relay/endpoints/${String(body.id)}`
  const listed = async (state: string): Promise<readonly Record<string, unknown>[]> => {
    const { deliveries } = (await operate('GET', `/relay/deliveries?state=${state}`)).body
    return Array.isArray(deliveries) ? deliveries : []
  }
  return {
    send: (event: string) => push(relay.publicUrl, event),
    order: (method: string, below: string, settings?: object) => operate(method, `${path}${below}`, settings),
    skip: (delivery: unknown) => operate('POST', `/relay/deliveries/${String(delivery)}/skip`),
    attemptsOf: async (delivery: unknown) => (await operate('GET', `/relay/deliveries/${String(delivery)}`)).body.attempts,
    untilListed: (state: string, count: number) =>
      vi.waitFor(async () => {
        const found = await listed(state)
        expect(found).toHaveLength(count)
        return found
      }),
  }
}

test('the receiver for Node says which Node it needs if this Node has no database', () => {
  const file = join(temporaryFolder(), 'receiver.mjs')
  writeFileSync(file, blockUnder(PAGE, 'Node', 'js'))
  const { status, stderr } = spawnSync(process.execPath, ['--no-experimental-sqlite', file], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([1, `receiver.mjs needs Node 22.13 or later, and this is Node ${process.versions.node}.\n`])
})

describe.each(RECEIVERS)('the receiver for $heading in docs/integrating.md', (receiver) => {
  testWith('bash', ...receiver.tools)('stores each signed event once and in order, with either key', async () => {
    const { folder, url, startWith, listens } = await startReceiver(receiver)
    const stored = () => receiver.stored(folder)
    const stop = startWith(KEY)
    await listens()
    const { send, order, skip, attemptsOf, untilListed } = await startEndpoint(url)

    // A test push is answered and not stored.
    const tried = await order('POST', '/test')
    expect(tried.body.status).toSatisfy((status: number) => status === 200 || status === 204)
    await send(first)
    const [delivered] = await untilListed('delivered', 1)
    expect(await stored()).toEqual([first])

    // A replay sends the event again under the same id, so it is a duplicate.
    expect((await order('POST', '/replay', { since: 0, state: 'delivered' })).body).toMatchObject({ count: 1 })
    await vi.waitFor(async () => expect(await attemptsOf(delivered?.id)).toHaveLength(2))
    expect(await stored()).toEqual([first])

    // The second event is skipped, and a replay sends it after the third.
    await order('PATCH', '', { enabled: false })
    for (const event of [second, third]) await send(event)
    const held = await untilListed('held', 2)
    await skip(held.at(-1)?.id)
    await order('PATCH', '', { enabled: true })
    await untilListed('delivered', 2)
    expect(await stored()).toEqual([first, third])
    expect((await order('POST', '/replay', { since: 0, state: 'dead' })).body).toMatchObject({ count: 1 })
    await untilListed('delivered', 3)
    expect(await stored()).toEqual([first, second, third])

    // While the key is replaced, a receiver may have the old one or the new one.
    const { sharedKey } = (await order('POST', '/rotate')).body
    await send(fourth)
    await untilListed('delivered', 4)
    await stop()
    startWith(String(sharedKey))
    await listens()
    await send(fifth)
    await untilListed('delivered', 5)
    expect((await order('GET', '')).body).toMatchObject({ nextKeyFrom: expect.any(String) })
    expect(await stored()).toEqual([first, second, third, fourth, fifth])

    // A scan that the carrier reports late does not overwrite a newer status.
    expect(await receiver.current(folder)).toBe(minute(4))
    const late = pushBody({ eventTime: '2026-02-28T23:00:00Z', location: 'Åre late' }).toString()
    await send(late)
    await untilListed('delivered', 6)
    expect(await stored()).toEqual([first, second, third, fourth, fifth, late])
    expect(await receiver.current(folder)).toBe(minute(4))
  })

  testWith('bash', ...receiver.tools)('refuses and does not store a push with no signature, a wrong one, or too many bytes', async () => {
    const { folder, url, startWith, listens } = await startReceiver(receiver)
    startWith(KEY)
    await listens()
    const statusOf = async (headers: Readonly<Record<string, string>>, body = unsigned) =>
      (await fetch(url, { method: 'POST', body, headers: { 'webhook-id': 'evt_1', 'relay-sequence': '1', ...headers } })).status
    const signed = signBody(Buffer.from(unsigned), KEY)
    const wrong = [
      {},
      { 'x-service-hmac-sha256': '' },
      { 'x-service-hmac-sha256': `${signed.slice(0, -3)}AA=` },
      { 'x-service-hmac-sha256': signBody(Buffer.from(unsigned), `${KEY}2`) },
      { 'x-service-hmac-sha256': 'ÿ', 'x-service-hmac-sha256-next': 'not Base64' },
    ]
    for (const headers of wrong) expect([headers, await statusOf(headers)]).toEqual([headers, 401])
    expect(await statusOf({ 'x-service-hmac-sha256': signed }, `${unsigned} `)).toBe(401)
    const long = 'x'.repeat(1_000_001)
    expect(await statusOf({ 'x-service-hmac-sha256': signBody(Buffer.from(long), KEY) }, long).catch(() => 413)).toBe(413)
    expect(await receiver.stored(folder)).toEqual([])
    expect(await statusOf({ 'x-service-hmac-sha256': 'old', 'x-service-hmac-sha256-next': signed })).toBeLessThan(300)
    expect(await receiver.stored(folder)).toEqual([unsigned])
  })

  testWith('bash', ...receiver.tools)('prints nothing about a connection that is reset before it is used', async () => {
    const { url, startWith, listens, resetUnused, complaints } = await startReceiver(receiver)
    const stop = startWith(KEY)
    await listens()
    for (let nth = 0; nth < 5; nth++) await resetUnused()
    // When the receiver answers this later request, it has already seen the resets.
    const headers = { 'x-service-hmac-sha256': signBody(Buffer.from(first), KEY), 'webhook-id': 'evt_1', 'relay-sequence': '1' }
    await fetch(url, { method: 'POST', body: first, headers })
    await stop()
    expect(complaints.join('')).not.toMatch(/Traceback|reset/i)
  })

  testWith('bash', ...receiver.tools)('does not accept an event that it cannot store', async () => {
    const { folder, url, startWith, listens } = await startReceiver(receiver)
    startWith(KEY)
    await listens()
    for (const name of readdirSync(folder).filter((one) => one.startsWith('events'))) rmSync(join(folder, name), { recursive: true })
    const headers = { 'x-service-hmac-sha256': signBody(Buffer.from(first), KEY), 'webhook-id': 'evt_1', 'relay-sequence': '1' }
    const answered = await fetch(url, { method: 'POST', body: first, headers }).then(
      ({ ok }) => ok,
      () => false,
    )
    expect(answered).toBe(false)
  })
})
