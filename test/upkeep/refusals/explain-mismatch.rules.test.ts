import { createHash, createHmac } from 'node:crypto'
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { explainMismatch, type SuspectPush, searchMismatch } from '../../../src/upkeep/refusals/explain-mismatch.rules.ts'
import { describeCause, MISMATCH_CAUSES, MISMATCH_CODES } from '../../../src/upkeep/refusals/mismatch-causes.rules.ts'

const BOUNDS = { triesMax: 50_000, hashedBytesMax: 64 * 1024 * 1024 }
/** The key is in Base64, as `generate-key` makes keys. */
const KEY = 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA='
const OLD_KEY = 'the+key of "last" year'
const HEX_KEY = 'a1b2c3d4e5f60718293a4b5c6d7e8f90'
const EVENT = {
  status: 'TerminalArrived',
  detailedStatus: 'ArrivedT2',
  eventTime: '2026-03-01T10:00:00.250Z',
  location: 'Malmö',
  trackingIds: ['370000000000000001'],
  distributionType: 'Mailbox',
  displayToConsumer: true,
  consumerDescription: [{ value: 'Paketet är på terminalen <1/2> & på väg', languageCode: 'sv' }],
  detailedStatusDescription: [],
}
const BODY = Buffer.from(JSON.stringify(EVENT))

const mac = (body: Uint8Array | string, key: string | Uint8Array = KEY, algorithm = 'sha256') =>
  createHmac(algorithm, key).update(body).digest()
const sign = (body: Uint8Array | string, key: string | Uint8Array = KEY) => mac(body, key).toString('base64')

function explain(body: Uint8Array | string | null, signatures: string | readonly string[], more: Partial<SuspectPush> = {}) {
  const push = {
    body: typeof body === 'string' ? Buffer.from(body) : body,
    signatures: typeof signatures === 'string' ? [signatures] : signatures,
    webhookId: null,
    webhookTimestamp: null,
    keys: [{ name: 'new', key: KEY }],
    otherKeys: [],
    ...more,
  }
  const { verdict, key, causes } = explainMismatch(push, BOUNDS)
  return { verdict, key, codes: causes.map(({ code }) => code).join(' '), details: causes.map(({ detail }) => detail) }
}

/** A key whose signature of the body has a `+` and a `/`, so that URL-safe Base64 differs. */
const URL_KEY = Array.from({ length: 5000 }, (_, at) => `key-${at}-of-some-length`).find((key) => /\+.*\//.test(sign(BODY, key))) ?? ''
const withKey = (key: string, name = 'new') => ({ keys: [{ name, key }] })
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, inner]) => [name, sorted(inner)]),
        )
      : value
const python = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(python).join(', ')}]`
    : typeof value === 'object' && value !== null
      ? `{${Object.entries(value)
          .map(([name, inner]) => `"${name}": ${python(inner)}`)
          .join(', ')}}`
      : JSON.stringify(value)
const escaped = (text: string) => text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
const pretty = JSON.stringify(EVENT, null, 2)
const crlf = (text: string) => text.replaceAll('\n', '\r\n')
const text = BODY.toString()

interface Case {
  readonly title: string
  readonly arrived: Uint8Array | string
  readonly signature: string | readonly string[]
  readonly codes: string
  readonly more?: Partial<SuspectPush>
}

const CASES: readonly Case[] = [
  { title: 'no header', arrived: BODY, signature: [], codes: 'signature_missing' },
  { title: 'the header twice', arrived: BODY, signature: [sign(BODY), sign(BODY)], codes: 'signature_repeated' },
  { title: 'hexadecimal', arrived: BODY, signature: mac(BODY).toString('hex'), codes: 'signature_hex' },
  { title: 'upper-case hexadecimal', arrived: BODY, signature: mac(BODY).toString('hex').toUpperCase(), codes: 'signature_hex' },
  {
    title: 'sha256= and hexadecimal',
    arrived: BODY,
    signature: `sha256=${mac(BODY).toString('hex')}`,
    codes: 'signature_prefix signature_hex',
  },
  { title: 'sha256= and Base64', arrived: BODY, signature: `sha256=${sign(BODY)}`, codes: 'signature_prefix' },
  {
    title: 'url-safe Base64',
    arrived: BODY,
    signature: mac(BODY, URL_KEY).toString('base64url').padEnd(44, '='),
    codes: 'signature_url_safe',
    more: withKey(URL_KEY),
  },
  {
    title: 'url-safe Base64 without padding',
    arrived: BODY,
    signature: mac(BODY, URL_KEY).toString('base64url'),
    codes: 'signature_url_safe signature_unpadded',
    more: withKey(URL_KEY),
  },
  { title: 'Base64 without padding', arrived: BODY, signature: sign(BODY).slice(0, -1), codes: 'signature_unpadded' },
  {
    title: 'Base64 of hexadecimal',
    arrived: BODY,
    signature: Buffer.from(mac(BODY).toString('hex')).toString('base64'),
    codes: 'signature_double',
  },
  {
    title: 'Base64 of Base64',
    arrived: BODY,
    signature: Buffer.from(sign(BODY)).toString('base64'),
    codes: 'signature_double',
  },
  { title: 'no body', arrived: '', signature: sign(BODY), codes: 'body_missing' },
  {
    title: 'no body and a signature in hexadecimal',
    arrived: '',
    signature: mac(BODY).toString('hex'),
    codes: 'body_missing signature_hex',
  },
  { title: 'a space before the key', arrived: BODY, signature: sign(BODY, ` ${KEY}`), codes: 'key_extra_space' },
  { title: 'a tab before the key', arrived: BODY, signature: sign(BODY, `\t${KEY}`), codes: 'key_extra_space' },
  {
    title: 'a key in NFD',
    arrived: BODY,
    signature: sign(BODY, 'nyckel-å-ä-ö'.normalize('NFD')),
    codes: 'key_normalised',
    more: withKey('nyckel-å-ä-ö'.normalize('NFC')),
  },
  { title: 'a key without its padding', arrived: BODY, signature: sign(BODY, KEY.slice(0, -1)), codes: 'key_unpadded' },
  { title: 'a key with the prefix whsec_ added', arrived: BODY, signature: sign(BODY, `whsec_${KEY}`), codes: 'key_prefix_added' },
  { title: 'key and body swapped', arrived: BODY, signature: sign(KEY, BODY), codes: 'key_swapped' },
  { title: 'a body that arrived as Latin-1', arrived: Buffer.from(text, 'latin1'), signature: sign(BODY), codes: 'body_sent_latin1' },
  { title: 'a body that arrived as UTF-16', arrived: Buffer.from(text, 'utf16le'), signature: sign(BODY), codes: 'body_sent_utf16' },
  {
    title: 'a body that arrived as UTF-16 with a mark',
    arrived: Buffer.from(`\uFEFF${text}`, 'utf16le'),
    signature: sign(BODY),
    codes: 'body_sent_utf16',
  },
  {
    title: 'a body that arrived as big-endian UTF-16',
    arrived: Buffer.from(text, 'utf16le').swap16(),
    signature: sign(BODY),
    codes: 'body_sent_utf16',
  },
  { title: 'a newline after the signature', arrived: BODY, signature: `${sign(BODY)}\n`, codes: 'signature_white_space' },
  { title: 'quotes around the signature', arrived: BODY, signature: `"${sign(BODY)}"`, codes: 'signature_quoted' },
  { title: 'a percent-encoded signature', arrived: BODY, signature: encodeURIComponent(sign(BODY)), codes: 'signature_percent' },
  {
    title: 'a signature of which half was sent',
    arrived: BODY,
    signature: mac(BODY).subarray(0, 15).toString('hex'),
    codes: 'signature_hex signature_truncated',
  },
  { title: 'a header that holds no digest', arrived: BODY, signature: 'none', codes: 'signature_malformed' },
  { title: 'the key instead of a signature', arrived: BODY, signature: KEY, codes: 'key_sent' },
  { title: 'HMAC-SHA1', arrived: BODY, signature: mac(BODY, KEY, 'sha1').toString('base64'), codes: 'algorithm' },
  { title: 'HMAC-SHA512', arrived: BODY, signature: mac(BODY, KEY, 'sha512').toString('base64'), codes: 'algorithm' },
  { title: 'HMAC-SHA1 in hexadecimal', arrived: BODY, signature: mac(BODY, KEY, 'sha1').toString('hex'), codes: 'signature_hex algorithm' },
  {
    title: 'SHA-256 without a key',
    arrived: BODY,
    signature: createHash('sha256').update(BODY).digest('base64'),
    codes: 'digest_without_key',
  },
  {
    title: 'SHA-256 of key and body',
    arrived: BODY,
    signature: createHash('sha256').update(KEY).update(BODY).digest('base64'),
    codes: 'digest_with_key',
  },
  {
    title: 'a Standard Webhooks message',
    arrived: BODY,
    signature: `v1,${sign(`msg_1.1700000000.${text}`)}`,
    codes: 'signature_prefix signed_with_time',
    more: { webhookId: 'msg_1', webhookTimestamp: '1700000000' },
  },
  {
    title: 'a time in the header',
    arrived: BODY,
    signature: `t=1700000000,v1=${mac(`1700000000.${text}`).toString('hex')}`,
    codes: 'signature_prefix signature_hex signed_with_time',
  },
  {
    title: 'a key of another purpose',
    arrived: BODY,
    signature: sign(BODY, OLD_KEY),
    codes: 'other_key',
    more: { otherKeys: [{ name: 'endpoints[0].sharedKey', key: OLD_KEY }] },
  },
  { title: 'a key with a newline', arrived: BODY, signature: sign(BODY, `${KEY}\n`), codes: 'key_newline' },
  { title: 'a key with CRLF', arrived: BODY, signature: sign(BODY, `${KEY}\r\n`), codes: 'key_newline' },
  { title: 'a key without its white space', arrived: BODY, signature: sign(BODY, KEY), codes: 'key_white_space', more: withKey(` ${KEY}`) },
  { title: 'a key in quotes', arrived: BODY, signature: sign(BODY, `"${KEY}"`), codes: 'key_quoted' },
  {
    title: 'a key without the quotes it has here',
    arrived: BODY,
    signature: sign(BODY, KEY),
    codes: 'key_unquoted',
    more: withKey(`'${KEY}'`),
  },
  { title: 'a key decoded from Base64', arrived: BODY, signature: sign(BODY, Buffer.from(KEY, 'base64')), codes: 'key_base64_decoded' },
  {
    title: 'a key decoded from hexadecimal',
    arrived: BODY,
    signature: sign(BODY, Buffer.from(HEX_KEY, 'hex')),
    codes: 'key_hex_decoded',
    more: withKey(HEX_KEY),
  },
  { title: 'a key in Base64', arrived: BODY, signature: sign(BODY, Buffer.from(KEY).toString('base64')), codes: 'key_base64_encoded' },
  { title: 'a key in upper case', arrived: BODY, signature: sign(BODY, HEX_KEY.toUpperCase()), codes: 'key_case', more: withKey(HEX_KEY) },
  {
    title: 'a key with + read as a space',
    arrived: BODY,
    signature: sign(BODY, OLD_KEY.replace('+', ' ')),
    codes: 'key_percent',
    more: withKey(OLD_KEY),
  },
  {
    title: 'a whsec_ key decoded',
    arrived: BODY,
    signature: sign(BODY, Buffer.from(KEY, 'base64')),
    codes: 'key_prefix',
    more: withKey(`whsec_${KEY}`),
  },
  { title: 'an empty key', arrived: BODY, signature: sign(BODY, ''), codes: 'key_empty' },
  { title: 'an empty body', arrived: BODY, signature: sign(''), codes: 'body_empty' },
  { title: 'a newline added to the body', arrived: `${text}\n`, signature: sign(BODY), codes: 'body_trailing_newline' },
  { title: 'a newline taken from the body', arrived: BODY, signature: sign(`${text}\n`), codes: 'body_trailing_newline' },
  { title: 'LF that became CRLF', arrived: crlf(pretty), signature: sign(pretty), codes: 'body_crlf' },
  { title: 'CRLF that became LF', arrived: pretty, signature: sign(crlf(pretty)), codes: 'body_crlf' },
  { title: 'a byte order mark added', arrived: `\uFEFF${text}`, signature: sign(BODY), codes: 'body_bom' },
  { title: 'a byte order mark taken away', arrived: BODY, signature: sign(`\uFEFF${text}`), codes: 'body_bom' },
  { title: 'spaces around the body', arrived: `  ${text} `, signature: sign(BODY), codes: 'body_white_space' },
  { title: 'a pretty body made compact', arrived: BODY, signature: sign(pretty), codes: 'body_reserialised' },
  { title: 'a compact body made pretty', arrived: JSON.stringify(EVENT, null, 4), signature: sign(BODY), codes: 'body_reserialised' },
  { title: 'the spaces of Python', arrived: BODY, signature: sign(python(EVENT)), codes: 'body_reserialised' },
  { title: 'the spaces and escapes of Python', arrived: BODY, signature: sign(escaped(python(EVENT))), codes: 'body_reserialised' },
  { title: 'the slashes of PHP', arrived: BODY, signature: sign(escaped(text.replaceAll('/', '\\/'))), codes: 'body_reserialised' },
  {
    title: 'the escapes of Go',
    arrived: BODY,
    signature: sign(text.replaceAll('<', '\\u003c').replaceAll('>', '\\u003e').replaceAll('&', '\\u0026')),
    codes: 'body_reserialised',
  },
  { title: 'members put in alphabetical order', arrived: JSON.stringify(sorted(EVENT)), signature: sign(BODY), codes: 'body_reserialised' },
  {
    title: 'members that were in alphabetical order',
    arrived: BODY,
    signature: sign(JSON.stringify(sorted(EVENT))),
    codes: 'body_reserialised',
  },
  { title: 'UTF-16', arrived: BODY, signature: sign(Buffer.from(text, 'utf16le')), codes: 'body_utf16' },
  { title: 'Latin-1', arrived: BODY, signature: sign(Buffer.from(text, 'latin1')), codes: 'body_latin1' },
  { title: 'UTF-8 encoded twice', arrived: Buffer.from(BODY.toString('latin1')), signature: sign(BODY), codes: 'body_recoded' },
  { title: 'decomposed letters', arrived: text.normalize('NFD'), signature: sign(BODY), codes: 'body_normalised' },
  { title: 'a body compressed after signing', arrived: gzipSync(BODY), signature: sign(BODY), codes: 'body_compressed' },
  { title: 'a body in brotli after signing', arrived: brotliCompressSync(BODY), signature: sign(BODY), codes: 'body_compressed' },
  { title: 'an inflated body', arrived: BODY, signature: sign(gzipSync(BODY)), codes: 'body_inflated' },
  { title: 'a body inflated from deflate', arrived: BODY, signature: sign(deflateSync(BODY, { level: 9 })), codes: 'body_inflated' },
  { title: 'a body in Base64', arrived: BODY.toString('base64'), signature: sign(BODY), codes: 'body_base64' },
  { title: 'a body in a JSON string', arrived: JSON.stringify(text), signature: sign(BODY), codes: 'body_json_string' },
  { title: 'a body sent as a form', arrived: `payload=${encodeURIComponent(text)}`, signature: sign(BODY), codes: 'body_form' },
  { title: 'a body in an envelope', arrived: JSON.stringify({ id: 1, data: EVENT }), signature: sign(BODY), codes: 'body_wrapped' },
  { title: 'a body that breaks off', arrived: text.slice(0, 200), signature: sign(BODY), codes: 'body_incomplete unknown' },
  { title: 'a key that nobody here knows', arrived: BODY, signature: sign(BODY, 'quite another key'), codes: 'unknown' },
  {
    title: 'a key with a newline, in hexadecimal, over a pretty body',
    arrived: BODY,
    signature: mac(pretty, `${KEY}\n`).toString('hex'),
    codes: 'signature_hex key_newline body_reserialised',
  },
  {
    title: 'a decoded key over a compressed body',
    arrived: gzipSync(BODY),
    signature: sign(BODY, Buffer.from(KEY, 'base64')),
    codes: 'key_base64_decoded body_compressed',
  },
]

describe('why a signature does not match', () => {
  test.each(CASES)('explains $title', ({ arrived, signature, codes, more }) => {
    const found = explain(arrived, signature, more)
    expect(found.codes).toBe(codes)
    expect(found.verdict).toBe(codes.includes('unknown') ? 'unexplained' : 'explained')
  })

  test('at least forty cases are explained, and with the rarer cases they cover every cause', () => {
    expect(CASES.length).toBeGreaterThanOrEqual(40)
    const shown = new Set(CASES.flatMap(({ codes }) => codes.split(' ')))
    const rest = ['signature_bits', 'key_hex_encoded', 'key_bom', 'key_utf16', 'key_latin1', 'body_nul', 'body_unread']
    expect([...shown, ...rest].toSorted()).toEqual(MISMATCH_CODES.toSorted())
  })

  test.each([
    ['signature_bits', BODY, `${sign(BODY).slice(0, 42)}${nextLetter(sign(BODY).charAt(42))}=`, KEY],
    ['key_extra_space', BODY, sign(BODY, `${KEY} `), KEY],
    ['key_hex_encoded', BODY, sign(BODY, Buffer.from(KEY).toString('hex')), KEY],
    ['key_bom', BODY, sign(BODY, `\uFEFF${KEY}`), KEY],
    ['key_utf16', BODY, sign(BODY, Buffer.from(KEY, 'utf16le')), KEY],
    ['key_latin1', BODY, sign(BODY, Buffer.from('nyckel-åäö', 'latin1')), 'nyckel-åäö'],
    ['body_nul', `${text}\0`, sign(BODY), KEY],
    ['body_unread unknown', null, sign(BODY), KEY],
  ] as const)('explains the rarer %s', (codes, arrived, signature, key) => {
    expect(explain(arrived, signature, withKey(key)).codes).toBe(codes)
  })
})

function nextLetter(letter: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  return alphabet.charAt(alphabet.indexOf(letter) + 1)
}

test('a matching signature is valid, and the explanation names the matching key', () => {
  const keys = [
    { name: 'old', key: OLD_KEY },
    { name: 'new', key: KEY },
  ]
  expect(explain(BODY, signBody(BODY, KEY), { keys })).toEqual({ verdict: 'valid', key: 'new', codes: '', details: [] })
  expect(explain(BODY, sign(pretty, OLD_KEY), { keys })).toMatchObject({ key: 'old', codes: 'body_reserialised' })
})

test('details name the algorithm, or how the sender formatted the body', () => {
  expect(explain(BODY, mac(BODY, KEY, 'sha1').toString('base64')).details).toEqual(['HMAC-SHA1'])
  expect(explain(BODY, sign(pretty)).details).toEqual(['the sender signed it indented by 2 spaces'])
  expect(describeCause({ code: 'algorithm', detail: 'HMAC-SHA1' })).toBe(`${MISMATCH_CAUSES.algorithm} Here: HMAC-SHA1.`)
})

test('no explanation contains a key or a part of the body', () => {
  for (const { arrived, signature, more } of CASES) {
    const { details } = explain(arrived, signature, more)
    const said = details.join(' ')
    for (const secret of [KEY, OLD_KEY, HEX_KEY, URL_KEY, 'Malm', '3700000']) expect(said).not.toContain(secret)
  }
})

test('a wrong form of the signature is named even without a body or a matching key', () => {
  expect(explain(null, mac(BODY).toString('hex')).codes).toBe('signature_hex')
  expect(explain(BODY, mac(BODY, 'quite another key').toString('hex')).codes).toBe('signature_hex unknown')
})

test('the search pauses after each try, and its limits end it', () => {
  const push = {
    body: Buffer.alloc(100_000, 'x'),
    signatures: [sign('other')],
    webhookId: null,
    webhookTimestamp: null,
    keys: [{ name: 'new', key: KEY }],
    otherKeys: [],
  }
  const stepsOf = (bounds: typeof BOUNDS) => {
    const search = searchMismatch(push, bounds)
    for (let steps = 0; ; steps++) {
      const step = search.next()
      if (step.done === true) return { steps, isCutShort: step.value.isCutShort }
    }
  }
  expect(stepsOf({ triesMax: 7, hashedBytesMax: BOUNDS.hashedBytesMax })).toEqual({ steps: 7, isCutShort: true })
  expect(stepsOf({ triesMax: 1000, hashedBytesMax: 450_000 })).toEqual({ steps: 5, isCutShort: true })
  expect(stepsOf(BOUNDS).isCutShort).toBe(false)
})

test('a small body that inflates to a large one is given up, and odd input does not throw', () => {
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024))
  expect(gunzipSync(bomb).length).toBe(50 * 1024 * 1024)
  expect(explain(bomb, sign(BODY)).codes).toBe('unknown')
  const odd = [
    '',
    '{',
    '[]',
    'null',
    '"x"',
    '{"a":"\\ud800"}',
    '\ud800',
    `${'['.repeat(100)}${']'.repeat(100)}`,
    '%',
    'a=%E4%zz',
    '{"__proto__":1}',
  ]
  for (const body of odd)
    for (const signature of ['', ' ', '====', 'é', 'x'.repeat(2000), sign('y')]) expect(explain(body, signature).verdict).not.toBe('valid')
})
