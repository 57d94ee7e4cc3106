import { globSync, readFileSync } from 'node:fs'
import { verify } from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { presentSchema } from '../../../src/console/cli/config.command.ts'
import { redactedConfig } from '../../../src/console/cli/redacted-config.ts'
import { JSON_SCHEMA, loadConfig, SECTIONS } from '../../support/relay/load-config.ts'
import { CANARY, HASH, headlinesOf, load, minimal, withLines } from './config-cases.ts'

const EXAMPLE = 'config/example.yaml'

const env = {
  RELAY_SHARED_KEY: CANARY,
  RELAY_UPSTREAM_PASSWORD: CANARY,
  RELAY_SHOP_PASSWORD_HASH: HASH,
  RELAY_ADMIN_PASSWORD_HASH: HASH,
  RELAY_SHOP_KEY: CANARY,
  RELAY_SHOP_TOKEN: CANARY,
  RELAY_OPS_KEY: CANARY,
  RELAY_AT_REST_KEY: Buffer.alloc(32, 7).toString('base64'),
}

/** The example config with every setting in use, including those that it leaves empty or comments out. */
const everything = readFileSync(EXAMPLE, 'utf8')
  .replaceAll('trustProxy: []', 'trustProxy: [10.0.0.0/8]')
  .replace('  atRestKeys: []\n', '')
  .replace('watchdogs: []\n', '')
  .replace(/^(\s*)#(?=[a-z]| {2})/gm, '$1')

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly anyOf?: readonly SchemaNode[]
}

/** Lists every path of the schema, with `[]` for an item of a list. */
function pathsOf(node: SchemaNode, path: readonly string[] = []): readonly (readonly string[])[] {
  const below = Object.entries(node.properties ?? {}).flatMap(([key, value]) => pathsOf(value, [...path, key]))
  const items = node.items === undefined ? [] : pathsOf(node.items, [...path, '[]'])
  return [...(path.length === 0 ? [] : [path]), ...below, ...items]
}

const paths = pathsOf(JSON_SCHEMA)

describe('the shipped files', () => {
  test('the example loads without a warning', () => {
    const config = loadConfig(EXAMPLE, env)
    expect(config.warnings).toEqual([])
    expect(config.conflicts).toEqual([])
  })

  test('the settings in the example are the defaults', () => {
    const { apps, ...rest } = redactedConfig(loadConfig(EXAMPLE, env))
    const plain = redactedConfig(load(minimal))
    expect(apps).toHaveLength(2)
    expect({ ...rest, apps: [] }).toEqual(plain)
  })

  test.each(['config/example.yaml', ...globSync('config/{container*,systemd/relay}.yaml')])(
    'in %s, upstream.baseUrl is the only address to change',
    (file) => {
      const settings = readFileSync(file, 'utf8').replaceAll(/^ *#.*| # .*/gm, '')
      expect(settings.match(/^.*https?:\/\/.*$/gm)).toEqual(['  baseUrl: https://carrier.example'])
    },
  )

  test('the example has every setting that exists', () => {
    const config = load(everything, env)
    const written = JSON.stringify(redactedConfig(config))
    const keys = new Set(paths.flatMap((path) => path.filter((key) => key !== '[]')))
    expect([...keys].filter((key) => !written.includes(`"${key}":`))).toEqual([])
  })

  test('the example and the demo config name the schema for editors in their first line', () => {
    for (const file of [EXAMPLE, 'config/demo.yaml']) {
      expect(readFileSync(file, 'utf8').split('\n', 1)).toEqual(['# yaml-language-server: $schema=./relay.schema.json'])
    }
  })

  test('config/relay.schema.json is what `config schema` prints', () => {
    expect(readFileSync('config/relay.schema.json', 'utf8')).toBe(presentSchema(SECTIONS))
  })

  test('every setting has a description in the schema', () => {
    const undocumented = paths.filter((path) => {
      const node = path.reduce<SchemaNode | undefined>((at, key) => (key === '[]' ? at?.items : at?.properties?.[key]), JSON_SCHEMA)
      return path.at(-1) !== '[]' && node !== undefined && !('description' in node)
    })
    expect(undocumented).toEqual([])
  })

  test('the demo listens on loopback only, and its passwords match its comments', async () => {
    const config = loadConfig('config/demo.yaml', {})
    expect([config.listen.public.host, config.listen.internal.host]).toEqual(['127.0.0.1', '127.0.0.1'])
    expect([...config.warnings, ...config.conflicts]).toEqual([])
    const comments = readFileSync('config/demo.yaml', 'utf8')
    for (const { username, passwordHash } of config.apps) {
      const password = `${username}-demo-password`
      expect(comments).toContain(`username: ${username} # password: ${password}`)
      expect(await verify(passwordHash[0]?.reveal() ?? '', password)).toBe(true)
    }
    expect(config.apps.map(({ scopes }) => scopes)).toEqual([['status'], ['status', 'admin']])
  })
})

describe('every setting', () => {
  const wrong = ['"text: of another kind"', '-1', '1e99', 'true', '[[]]', '{ zzz: 1 }', '~']

  /** Makes a config that sets only this value at this path. */
  const place = (path: readonly string[], value: string) =>
    path.toReversed().reduce((inner, key) => (key === '[]' ? `[${inner}]` : `{ ${key}: ${inner} }`), value)

  test.each(paths.map((path) => [path.join('.'), path] as const))(
    'C2: refuses values of a wrong kind for %s with a message of our own',
    (_, path) => {
      const own = /^relay\.yaml:\d+:\d+ [\w.[\]]+: (?:must|is|names|needs|begins)\b/
      let refused = 0
      for (const value of wrong) {
        const lines = headlinesOf(place(path, value))
        const strange = lines.filter((line) => !own.test(line) || /Invalid|Too (?:small|big)|expected|undefined|NaN/.test(line))
        expect(strange).toEqual([])
        const name = path.join('.').replaceAll('.[]', '[0]')
        if (lines.some((line) => line.includes(` ${name}:`) || line.includes(` ${name}.`) || line.includes(` ${name}[`))) refused += 1
      }
      expect(refused).toBeGreaterThanOrEqual(4)
    },
  )
})

describe('config print', () => {
  const full = () => load(everything, env)

  test('C3: masks every secret and every password hash', () => {
    const printed = JSON.stringify(redactedConfig(full()))
    for (const secret of Object.values(env)) expect(printed).not.toContain(secret)
    expect(redactedConfig(full())).toMatchObject({
      webhook: { sharedKeys: ['[redacted]'] },
      upstream: { password: '[redacted]' },
      apps: [{ username: 'shop', passwordHash: '[redacted]' }, { passwordHash: '[redacted]' }],
      endpoints: [{ sharedKey: '[redacted]', headers: { authorization: '[redacted]' } }],
      operator: { url: 'http://ops.internal/[redacted]', sharedKey: '[redacted]' },
      secrets: { atRestKeys: ['[redacted]'] },
    })
  })

  test('C3: masks the credentials in the addresses of the store and of proxies', () => {
    const config = load(
      withLines(`store: postgres://relay:${CANARY}@db:5432/relay?password=${CANARY}`).replace(
        'username',
        `proxy: "http://u:${CANARY}@proxy:3128", username`,
      ),
    )
    expect(JSON.stringify(redactedConfig(config))).not.toContain(CANARY)
    expect(redactedConfig(config)).toMatchObject({
      store: 'postgres://[redacted]@db:5432/relay?[redacted]',
      upstream: { proxy: 'http://[redacted]@proxy:3128' },
    })
  })

  test('prints durations with their units', () => {
    expect(redactedConfig(load(withLines('serve: { refreshOlderThan: 90m }', 'shutdownTimeout: 1500ms')))).toMatchObject({
      shutdownTimeout: '1500ms',
      serve: { notFoundFor: '5m', refreshOlderThan: '90m' },
      poll: {
        cadence: { Created: '2h', default: '1h', whenPushIsHealthy: 'x4' },
        finished: { tail: ['1h', '1d', '3d'], staleAfter: '30d' },
      },
    })
    expect(redactedConfig(load(withLines('poll: { missedPushGrace: 0s }')))).toMatchObject({ poll: { missedPushGrace: '0ms' } })
  })

  test('prints a config that loads to the same settings when the secrets are inserted', () => {
    const printed = JSON.stringify(redactedConfig(full()), (key, value: unknown) => {
      if (key === 'passwordHash') return HASH
      if (key === 'atRestKeys') return [env.RELAY_AT_REST_KEY]
      return typeof value === 'string' ? value.replaceAll('[redacted]', CANARY) : value
    })
    expect(redactedConfig(load(printed))).toEqual(redactedConfig(full()))
    expect(JSON.parse(JSON.stringify(load(printed)))).toEqual(JSON.parse(JSON.stringify(full())))
  })
})
