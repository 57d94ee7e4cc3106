import { createHash, createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { raw } from '../core/http/harness.ts'
import { pushBody } from '../support/history/builders.ts'
import { SHARED_KEY } from '../support/relay/relay.ts'
import { rawRequest, signed, startWorld, type World } from './world.ts'

/** A key with letters that Unicode can encode in two ways, and a key that is also valid Base64. */
const ACCENTED = 'nyckel-för-båda-sidor'.normalize('NFC')
const BASE64_LIKE = 'QmFzZTY0LWtleS1vZi1tb3JlLXRoYW4tMzItYnl0ZXM='

let world: World
beforeAll(async () => {
  world = await startWorld({ webhook: { sharedKeys: [SHARED_KEY, ACCENTED, BASE64_LIKE] } })
})
afterAll(() => world.stop())

let nth = 0
/** An event of a new parcel, in several lines like the example in the specification. */
function freshEvent() {
  nth += 1
  const id = `70000000${nth}`
  const body = `${JSON.stringify(JSON.parse(pushBody({ trackingIds: [id] }).toString()), null, 2)}\r\n`
  return { id, body, length: `Content-Length: ${Buffer.byteLength(body)}`, signature: signed(body) }
}

const header = (value: string) => `x-service-hmac-sha256: ${value}`
const answered = { until: (text: string) => text.endsWith('}') || text.includes(' 200 OK') }
const statusOf = async (headers: readonly string[], body: string | Uint8Array) => {
  const { status, text } = await raw(world.publicPort, rawRequest('POST', headers, body), answered)
  if (status === 401) expect(text).toContain('"type":"urn:parcel-relay:error:signature_invalid"')
  return status
}

test('I1: a correctly signed push is a 200 without a body, and one row of exactly its bytes', async () => {
  const { id, body } = freshEvent()
  const answer = await world.push(body)
  expect([answer.status, await answer.text()]).toEqual([200, ''])
  expect(await world.inbox.rowOf(body)).toMatchObject({
    state: 'recorded',
    reason: null,
    keyIndex: 0,
    duplicates: 0,
    body: Buffer.from(body),
  })
  expect((await world.all(id)).statuses).toHaveLength(1)
})

test('I2: a push without the signature header is a 401 and no row', async () => {
  const { body, length } = freshEvent()
  expect(await statusOf([length], body)).toBe(401)
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

test('I2: a huge or endless body without a signature is not read, and the connection is closed', async () => {
  const announced = await raw(world.publicPort, rawRequest('POST', ['Content-Length: 200000000']))
  expect([announced.status, announced.closed]).toEqual([401, true])
  const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`
  const answer = await raw(world.publicPort, rawRequest('POST', ['Transfer-Encoding: chunked'], chunk.repeat(4)))
  expect(answer.closed).toBe(true)
})

test('I3: an empty or blank signature header is a 401 and no row', async () => {
  const { body, length } = freshEvent()
  for (const value of ['', '   ', '\t']) expect(await statusOf([header(value), length], body)).toBe(401)
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

test('I4: two signature headers are a 401 and no row, in any order, and even if joined into one', async () => {
  const { body, length, signature } = freshEvent()
  const bad = signed('something else')
  for (const [first, second] of [
    [signature, signature],
    [signature, bad],
    [bad, signature],
    [signature, ''],
    ['', signature],
  ] as const) {
    expect([first, second, await statusOf([header(first), header(second), length], body)]).toEqual([first, second, 401])
    expect(await statusOf([header(`${first}, ${second}`), length], body)).toBe(401)
  }
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

/** Changes the last bits of the text. A lax decoder ignores them, and would return the same 32 bytes. */
function withOtherLastBits(signature: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  return `${signature.slice(0, 42)}${alphabet[alphabet.indexOf(signature.charAt(42)) + 1]}=`
}

const urlSafe = (signature: string) => signature.replaceAll('+', '-').replaceAll('/', '_')
const LAX: readonly (readonly [string, (signature: string) => string])[] = [
  ['url-safe letters', urlSafe],
  ['url-safe letters without padding', (signature) => urlSafe(signature).slice(0, -1)],
  ['no padding', (signature) => signature.slice(0, -1)],
  ['one padding too many', (signature) => `${signature}=`],
  ['two paddings too many', (signature) => `${signature}==`],
  ['a space inside', (signature) => `${signature.slice(0, 20)} ${signature.slice(20)}`],
  ['a tab inside', (signature) => `${signature.slice(0, 20)}\t${signature.slice(20)}`],
  ['an escaped newline at its end', (signature) => `${signature}\\n`],
  ['trailing junk', (signature) => `${signature}junk`],
  ['trailing junk after a blank', (signature) => `${signature} junk`],
  ['junk in front', (signature) => `!${signature}`],
  ['other last bits', withOtherLastBits],
  ['hexadecimal', (signature) => Buffer.from(signature, 'base64').toString('hex')],
  ['a prefix sha256=', (signature) => `sha256=${signature}`],
  ['quotes', (signature) => `"${signature}"`],
  ['a byte beyond ASCII', (signature) => `\u00e9${signature}`],
  ['10 KB', (signature) => signature.repeat(233)],
  ['one byte too few', (signature) => Buffer.from(signature, 'base64').subarray(1).toString('base64')],
  ['one byte too many', (signature) => Buffer.concat([Buffer.from(signature, 'base64'), Buffer.from([0])]).toString('base64')],
  ['a letter in the other case', (signature) => signature.replace(/[a-z]/, (letter) => letter.toUpperCase())],
]

/** Makes an event whose signature has both letters that URL-safe Base64 replaces. */
function eventWithBothLetters() {
  for (;;) {
    const event = freshEvent()
    if (event.signature.includes('+') && event.signature.includes('/')) return event
  }
}

test.each(LAX)('I5: a signature with %s is a 401 and no row', async (_name, write) => {
  const { body, length, signature } = eventWithBothLetters()
  expect(write(signature)).not.toBe(signature)
  expect(await statusOf([header(write(signature)), length], body)).toBe(401)
  expect(await world.inbox.rowsOf(body)).toEqual([])
  expect(await statusOf([header(signature), length], body)).toBe(200)
})

test('I5: a signature with a line break is refused, and there is no row', async () => {
  const { body, length, signature } = freshEvent()
  for (const value of [
    `${signature.slice(0, 20)}\r\n ${signature.slice(20)}`,
    `${signature}\n`,
    `${signature.slice(0, 9)}\n${signature}`,
  ]) {
    expect([400, 401]).toContain((await raw(world.publicPort, rawRequest('POST', [header(value), length], body))).status)
  }
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

/** Works on `width` items at a time. The results are in the order of the items. */
async function inParallel<Item, Result>(items: readonly Item[], width: number, work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  const queue = [...items.entries()]
  const lane = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) results[next[0]] = await work(next[1])
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const changed = Buffer.from(bytes)
  changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
  return changed
}

test('I6: a signature with any one of its 256 bits flipped is a 401 and no row', async () => {
  const { body, signature } = freshEvent()
  const mac = Buffer.from(signature, 'base64')
  const forged = Array.from({ length: 256 }, (_, bit) => flipped(mac, bit).toString('base64'))
  expect(new Set(forged).size).toBe(256)
  const statuses = await inParallel(forged, 16, async (value) => (await world.push(body, { 'x-service-hmac-sha256': value })).status)
  expect(statuses).toEqual(Array.from({ length: 256 }, () => 401))
  expect(await world.inbox.rowsOf(body)).toEqual([])
  expect((await world.push(body)).status).toBe(200)
})

test('I6: a body with any one byte changed is a 401 and no row', async () => {
  const body = pushBody({ trackingIds: ['7777777'] })
  const before = await world.inbox.count()
  const headers = { 'x-service-hmac-sha256': signed(body) }
  const forged = Array.from({ length: body.length }, (_, at) => flipped(body, at * 8 + (at % 8)))
  const statuses = await inParallel(forged, 16, async (bytes) => (await world.push(bytes, headers)).status)
  expect(statuses).toEqual(forged.map(() => 401))
  expect(await world.inbox.count()).toBe(before)
  expect((await world.push(body, headers)).status).toBe(200)
})

test('I7: the signature of equal JSON in other bytes is a 401 and no row', async () => {
  const { body } = freshEvent()
  const compact = JSON.stringify(JSON.parse(body))
  const others = [
    compact,
    JSON.stringify(JSON.parse(body), null, 4),
    body.replaceAll('\r\n', '\n'),
    body.trimEnd(),
    `\ufeff${body}`,
    `${body}\n`,
  ]
  for (const other of others) {
    expect((await world.push(body, { 'x-service-hmac-sha256': signed(other) })).status).toBe(401)
    expect((await world.push(other, { 'x-service-hmac-sha256': signed(body) })).status).toBe(401)
  }
  for (const bytes of [body, ...others]) expect(await world.inbox.rowsOf(bytes)).toEqual([])
  const crlf = body.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n')
  expect((await world.push(crlf, { 'x-service-hmac-sha256': signed(crlf.replaceAll('\r\n', '\n')) })).status).toBe(401)
  expect(await world.inbox.rowsOf(crlf)).toEqual([])
})

test('I8: a signature by another hash, or with the key decoded, is a 401 and no row', async () => {
  const { body } = freshEvent()
  const hmac = (algorithm: string, key: string | Buffer) => createHmac(algorithm, key).update(body).digest()
  const forged = [
    hmac('sha1', SHARED_KEY),
    hmac('sha512', SHARED_KEY),
    hmac('sha512', SHARED_KEY).subarray(0, 32),
    hmac('sha512-256', SHARED_KEY),
    hmac('sha3-256', SHARED_KEY),
    createHash('sha256').update(body).digest(),
    createHash('sha256').update(`${SHARED_KEY}${body}`).digest(),
    hmac('sha256', `${SHARED_KEY}\n`),
    hmac('sha256', ` ${SHARED_KEY}`),
    hmac('sha256', ''),
    hmac('sha256', 'another-key-of-some-length'),
    hmac('sha256', Buffer.from(BASE64_LIKE, 'base64')),
    hmac('sha256', ACCENTED.normalize('NFD')),
    hmac('sha256', Buffer.from(ACCENTED, 'latin1')),
    hmac('sha256', Buffer.from(ACCENTED, 'utf16le')),
  ]
  for (const mac of forged) {
    expect((await world.push(body, { 'x-service-hmac-sha256': mac.toString('base64') })).status).toBe(401)
  }
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

test('I8: each configured key counts as its UTF-8 bytes, and the matching key is stored', async () => {
  for (const [index, key] of [SHARED_KEY, ACCENTED, BASE64_LIKE].entries()) {
    const { body } = freshEvent()
    expect((await world.push(body, { 'x-service-hmac-sha256': signed(body, key) })).status).toBe(200)
    expect((await world.inbox.rowOf(body)).keyIndex).toBe(index)
  }
})

test('I11: a signature header with underscores, or sent as a trailer, is a 401 and no row', async () => {
  const { body, length, signature } = freshEvent()
  expect(await statusOf([`x_service_hmac_sha256: ${signature}`, length], body)).toBe(401)
  const chunks = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n${header(signature)}\r\n\r\n`
  expect(await statusOf(['Trailer: x-service-hmac-sha256', 'Transfer-Encoding: chunked'], chunks)).toBe(401)
  expect(await world.inbox.rowsOf(body)).toEqual([])
})

test('I12: a push sent a thousand times gets 200 each time, and makes one row and one entry', async () => {
  const { id, body } = freshEvent()
  const before = await world.inbox.count()
  const statuses = await inParallel(Array.from({ length: 1000 }), 50, async () => (await world.push(body)).status)
  expect(statuses).toEqual(Array.from({ length: 1000 }, () => 200))
  expect(await world.inbox.count()).toBe(before + 1)
  expect(await world.inbox.rowOf(body)).toMatchObject({ state: 'recorded', duplicates: 999 })
  expect((await world.all(id)).statuses).toHaveLength(1)
})

test('I13: two bodies that differ only in white space make two rows and one entry', async () => {
  const { id, body } = freshEvent()
  const compact = JSON.stringify(JSON.parse(body))
  expect([(await world.push(body)).status, (await world.push(compact)).status]).toEqual([200, 200])
  const rows = [await world.inbox.rowOf(body), await world.inbox.rowOf(compact)]
  expect(rows.map(({ state }) => state)).toEqual(['recorded', 'recorded'])
  expect(rows[0]?.parcelId).toBe(rows[1]?.parcelId)
  expect((await world.all(id)).statuses).toHaveLength(1)
})
