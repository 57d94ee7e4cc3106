import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadStoreSettings } from '../../../src/core/config/config.ts'
import { createSecret } from '../../../src/core/config/secret.ts'
import { CANARY, fileOf, HASH, headlinesOf, load, minimal, problemsOf, withLines } from './config-cases.ts'

const withKey = (written: string) => minimal.replace(`sharedKeys: [${CANARY}]`, `sharedKeys: [${written}]`)
const KEY = 'a-shared-key-of-some-length'

function keyFile(content: string | Uint8Array, mode = 0o600): string {
  const path = fileOf(content, 'key')
  chmodSync(path, mode)
  return path
}

describe('the settings of the store', () => {
  const gone = '{ file: /run/credentials/parcel-relay.service/gone }'
  const endpoints = `endpoints: [{ name: shop, url: 'https://shop.internal/', sharedKey: ${KEY} }, { name: other, url: 'https://x.internal/', sharedKey: ${gone} }]`

  test('need no secret that work on a stopped store does not use', () => {
    const text = `${withKey(gone)}\nstore: sqlite:/var/x.db\n${endpoints}\n`
    const { store, secrets, endpoints: named } = loadStoreSettings(fileOf(text))
    expect([store, secrets.atRestKeys]).toEqual([{ engine: 'sqlite', path: '/var/x.db' }, []])
    expect(named.map(({ name, sharedKey }) => [name, sharedKey?.reveal() ?? null])).toEqual([
      ['shop', KEY],
      ['other', null],
    ])
  })

  test('are refused if a key that opens the store cannot be read', () => {
    const text = `${minimal}\nsecrets: { atRestKeys: [${gone}] }\n`
    expect(() => loadStoreSettings(fileOf(text))).toThrow(
      expect.objectContaining({ problems: [expect.stringContaining('a credential of systemd, which exists only while its service runs')] }),
    )
  })

  test('are those that the relay reads', () => {
    for (const path of ['config/systemd/relay.yaml', 'config/container.yaml']) {
      const written = /^store: sqlite:(\S+)/m.exec(readFileSync(path, 'utf8'))?.[1]
      expect(loadStoreSettings(path).store).toEqual({ engine: 'sqlite', path: written })
    }
  })
})

describe('files', () => {
  test.each([
    ['no newline', KEY, KEY],
    ['a newline', `${KEY}\n`, KEY],
    ['a CRLF', `${KEY}\r\n`, KEY],
    ['two newlines', `${KEY}\n\n`, `${KEY}\n`],
    ['a carriage return only', `${KEY}\r`, `${KEY}\r`],
  ])('C1: drops at most one newline from the end of a secret file that ends with %s', (_, content, expected) => {
    expect(load(withKey(`{ file: ${keyFile(content)} }`)).webhook.sharedKeys[0]?.reveal()).toBe(expected)
  })

  test.each([
    ['is empty', '', 'must not be empty or white space'],
    ['holds a newline only', '\n', 'must not be empty or white space'],
    ['holds white space only', ' \t\r\n', 'must not be empty or white space'],
    ['begins with a byte order mark', `\ufeff${KEY}`, 'begins with a byte order mark'],
    ['is not UTF-8', new Uint8Array([0x61, 0xff]), 'is not UTF-8 text'],
    ['is too large', 'x'.repeat(70_000), 'too large for a secret'],
  ])('C1: a secret file that %s stops the start', (_, content, expected) => {
    const lines = headlinesOf(withKey(`{ file: ${keyFile(content)} }`))
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^relay\\.yaml:1:25 webhook\\.sharedKeys\\[0\\]: .*${expected}`))])
  })

  test('C1: a missing secret file stops the start', () => {
    expect(headlinesOf(withKey('{ file: /nonexistent/key }'))).toEqual([
      'relay.yaml:1:25 webhook.sharedKeys[0]: names the file /nonexistent/key, which cannot be read (there is no such file or folder): create it, or correct the path',
    ])
  })

  test('C1: a secret file that everybody can read causes a warning', () => {
    const warn = (mode: number) => load(withKey(`{ file: ${keyFile(KEY, mode)} }`)).warnings
    expect(warn(0o644)).toEqual([
      expect.stringMatching(/webhook\.sharedKeys\[0\]: .*which every user of this machine can read: chmod o-r it/),
    ])
    expect(warn(0o640)).toEqual([])
  })
})

describe('values', () => {
  test.each([
    ['a variable that is not set', '{ env: RELAY_KEY }', {}, 'needs the environment variable RELAY_KEY, which is not set'],
    ['an empty variable', '{ env: RELAY_KEY }', { RELAY_KEY: '' }, 'must not be empty or white space'],
    ['a blank variable', '{ env: RELAY_KEY }', { RELAY_KEY: ' \n ' }, 'must not be empty or white space'],
    ['empty text', '""', {}, 'must not be empty or white space'],
    ['blank text', '"  "', {}, 'must not be empty or white space'],
    ['nothing', '', {}, 'must hold at least one key'],
    ['a number', '123456', {}, 'must be { env: NAME }'],
    ['an unknown source', '{ vault: x }', {}, 'must be { env: NAME }'],
    ['two sources', '{ env: A, file: B }', {}, 'must be { env: NAME }'],
    ['an invalid variable name', '{ env: a-b }', {}, 'must be the name of an environment variable'],
  ])('I9: a shared key that is %s stops the start, and the setting is named', (_, written, env, expected) => {
    expect(headlinesOf(withKey(written), env)).toEqual([expect.stringMatching(/webhook\.sharedKeys/)])
    expect(headlinesOf(withKey(written), env)[0]).toContain(expected)
  })

  test.each([
    ['15 bytes', 'abcdefghijklmno', /webhook\.sharedKeys\[0\]: is shorter than 16 bytes/],
    ['8 letters of two bytes', 'åäöåäöåä', null],
    ['16 bytes', 'abcdefghijklmnop', null],
    ['a placeholder', 'changeme', /placeholder/],
    ['a long placeholder', 'please-change-me-soon', /placeholder/],
    ['text in double quotes, as in an env file read literally', '"abcdefghijklmnop"', /is in quotes \(environment variable RELAY_KEY\)/],
    ['text in single quotes', "'abcdefghijklmnop'", /is in quotes/],
    ['text with a quote at one end', '"abcdefghijklmnop', null],
    ['white space at its end', 'abcdefghijklmnop ', /ends with white space/],
  ])('I9: a shared key of %s is accepted, with a warning if it is weak', (_, key, expected) => {
    const config = load(withKey('{ env: RELAY_KEY }'), { RELAY_KEY: key })
    expect(config.webhook.sharedKeys[0]?.reveal()).toBe(key)
    expect(config.warnings).toEqual(expected === null ? [] : [expect.stringMatching(expected)])
    expect(config.warnings.join()).not.toContain(key)
  })

  test('accepts one or two password hashes, and says which one is wrong', () => {
    const hashesOf = (written: string) =>
      load(withLines(`apps: [{ username: a, passwordHash: ${written}, scopes: [status] }]`)).apps[0]?.passwordHash
    expect([hashesOf(`"${HASH}"`)?.length, hashesOf(`["${HASH}", "${HASH}"]`)?.length]).toEqual([1, 2])
    const linesOf = (written: string) => headlinesOf(withLines(`apps: [{ username: a, passwordHash: ${written}, scopes: [status] }]`))
    expect(linesOf(`["${HASH}", "$2b$10$abc"]`)).toEqual([expect.stringMatching(/apps\[0\]\.passwordHash\[1\]: must be an argon2id hash/)])
    expect(linesOf('[]')).toEqual([expect.stringMatching(/apps\[0\]\.passwordHash: must be a list of one or two/)])
    expect(linesOf('7')).toEqual([expect.stringMatching(/apps\[0\]\.passwordHash: must be \{ env: NAME \}/)])
  })

  test('refuses a password hash of another kind, and an at-rest key of another length', () => {
    const lines = headlinesOf(
      withLines('apps: [{ username: a, passwordHash: "$2b$10$abc", scopes: [status] }]', 'secrets: { atRestKeys: [c2hvcnQ=] }'),
    )
    expect(lines).toEqual([
      expect.stringMatching(/apps\[0\]\.passwordHash: must be an argon2id hash/),
      expect.stringMatching(/secrets\.atRestKeys\[0\]: must be 32 bytes in Base64/),
    ])
  })

  test('asks for single quotes around a hash in which a shell replaced a `$`', () => {
    const { stdout: mangled } = spawnSync('sh', ['-c', `printf %s ${HASH}`], { encoding: 'utf8', env: {} })
    const apps = 'apps: [{ username: a, passwordHash: { env: HASH }, scopes: [status] }]'
    expect(headlinesOf(withLines(apps), { HASH: mangled })).toEqual([
      expect.stringMatching(/apps\[0\]\.passwordHash: is an argon2id hash that a shell has changed.*: write it in single quotes/),
    ])
    expect(headlinesOf(withLines(apps), { HASH })).toEqual([])
  })
})

describe('secrecy', () => {
  test('a secret is not shown, however it is printed', () => {
    const secret = createSecret(CANARY)
    const shown = [
      ['of', secret].join(' '),
      String(secret),
      JSON.stringify({ secret }),
      inspect({ secret }, { depth: 9, showHidden: true }),
      inspect({ ...secret }),
    ]
    expect(shown.join()).not.toContain(CANARY)
    expect(String(secret)).toBe('[redacted]')
    expect(secret.reveal()).toBe(CANARY)
    expect(inspect(load(minimal), { depth: 20, showHidden: true }) + JSON.stringify(load(minimal))).not.toContain(CANARY)
  })

  // Each config has a mistake that puts the secret into or near the text that a parser would quote.
  const slips: readonly string[] = [
    withLines(`pasword: ${CANARY}`),
    withLines(`{ ${CANARY}: 1 }`),
    withLines(`operator: { url: x, sharedKey: [${CANARY}] }`),
    withLines(`operator: { url: x, sharedKey: { vault: ${CANARY} } }`),
    withLines(`operator: { url: x, sharedKey: { ${CANARY}: } }`),
    withLines(`operator: { url: x, sharedKey:${CANARY} }`),
    withLines('operator:', '  url: x', `  sharedKey:${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: *${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: !${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: &${CANARY} &b c`),
    withLines('operator:', '  url: x', `  sharedKey: @${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: "${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: "\\q${CANARY}"`),
    withLines('operator:', '  url: x', `  sharedKey: ${CANARY}: x`),
    withLines('operator:', '  url: x', `  sharedKey: |${CANARY}`, `    ${CANARY}`),
    withLines('operator:', '  url: x', `\tsharedKey: ${CANARY}`),
    withLines('operator:', '  url: x', `  sharedKey: ${CANARY}`, `  sharedKey: ${CANARY}`),
    withLines('secrets:', '  atRestKeys:', `    - ${CANARY}`, `   - ${CANARY}`),
    withLines('secrets:', '  atRestKeys:', `    - ${CANARY}`, `    - ${CANARY}: x: y`),
    withLines(`store: postgres://user:${CANARY}@host`),
    withLines(`store: postgres://user:${CANARY}@host/db`).replace('username', `proxy: "ftp://u:${CANARY}@p", username`),
    withLines(`apps: [{ username: a, passwordHash: ${CANARY}, scopes: [x] }]`),
    withLines(`secret: { deep: [{ x: ${CANARY} }] }`, 'log: 1'),
    minimal.replace('baseUrl: https://', `baseUrl: https://user:${CANARY}@`),
    minimal.replace('acme,', 'acme'),
    minimal.replace('acme', '5'),
    `${minimal}${minimal}`,
    `${minimal}webhook: { sharedKeys: [${CANARY}, {}] }`,
  ]
  test.each(slips)('C1: the problems of a config never show a secret (%#)', (text) => {
    const problems = problemsOf(text)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join('\n')).not.toContain(CANARY)
  })

  test('C1: the error of a config shows no secret, however it is printed', () => {
    try {
      load(withLines(`pasword: ${CANARY}`))
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError)
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(CANARY)
    }
  })
})
