import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../support/relay/load-config.ts'
import { fileOf, HASH, headlinesOf, load, minimal, problemsOf, withLines } from './config-cases.ts'

describe('problems', () => {
  test('C2: lists all problems of a config together, with file, line and column', () => {
    const text = [
      'listen:',
      '  public: { prot: 80, port: "8080" }',
      'webhook: { path: /x/, sharedKeys: [{ env: NOT_SET }] }',
      'upstream:',
      '  baseUrl: carrier.example',
      '  username: acme',
      '  timeout: 10',
      '  username: acme',
      'poll: { cron: "61 * * * *", cadence: { default: 1 } }',
      'apps:',
      `  - { username: shop, passwordHash: "${HASH}", scopes: [statuss] }`,
      `  - { username: shop, passwordHash: secret, scopes: [] }`,
    ].join('\n')
    expect(headlinesOf(text).map((line) => line.replace(/: (must|is|needs|the) .*$/, ''))).toEqual([
      'relay.yaml:2:13 listen.public.prot',
      'relay.yaml:2:29 listen.public.port',
      'relay.yaml:3:18 webhook.path',
      'relay.yaml:3:36 webhook.sharedKeys[0]',
      'relay.yaml:4:1 upstream.password',
      'relay.yaml:5:12 upstream.baseUrl',
      'relay.yaml:7:12 upstream.timeout',
      'relay.yaml:8:3 the same key appears above: remove one of them',
      'relay.yaml:9:15 poll.cron',
      'relay.yaml:9:49 poll.cadence.default',
      'relay.yaml:11:147 apps[0].scopes[0]',
      'relay.yaml:12:17 apps[1].username',
      'relay.yaml:12:37 apps[1].passwordHash',
      'relay.yaml:12:53 apps[1].scopes',
    ])
  })

  test('C2: shows the line with a caret under the mistake', () => {
    expect(problemsOf(withLines('shutdownTimeout: soon'))).toEqual([
      [
        'relay.yaml:3:18 shutdownTimeout: must be a duration from 0s to 10m: a whole number and its unit (ms, s, m, h or d), such as 10s',
        '  3 | shutdownTimeout: soon',
        '    |                  ^',
      ].join('\n'),
    ])
  })

  test.each([
    ['a missing setting', 'webhook: {}\n', 'relay.yaml:1:1 webhook.sharedKeys: is missing; it must be a list'],
    ['an empty setting', withLines('log:'), 'relay.yaml:3:1 log: is empty; it must be a group of settings'],
    ['a key close to a known one', withLines('retenton: {}'), 'relay.yaml:3:1 retenton: is not a known key; did you mean retention?'],
    ['a key in another style', withLines('shutdown_timeout: 10s'), 'did you mean shutdownTimeout?'],
    [
      'a key that is close to no known one',
      withLines('log: { zzz: 1 }'),
      'relay.yaml:3:8 log.zzz: is not a known key; the keys here are level',
    ],
    [
      'a number as text',
      withLines('limits: { batch: "256" }'),
      'relay.yaml:3:18 limits.batch: must be a whole number from 1 to 10000, but is text: remove the quotes',
    ],
    ['a fraction where a whole number belongs', withLines('limits: { batch: 2.5 }'), 'must be a whole number from 1 to 10000'],
    ['text for a flag', withLines('serve: { fetchUnknown: yes }'), 'relay.yaml:3:24 serve.fetchUnknown: must be true or false'],
    ['a duration without a unit', withLines('shutdownTimeout: 10'), 'must be a duration from 0s to 10m'],
    ['a duration that is too long for a timer', withLines('delivery: { timeout: 25d }'), 'must be a duration from 100ms to 10m'],
    [
      'a cadence that would call the carrier too often',
      withLines('poll: { cadence: { Created: 1ms } }'),
      'relay.yaml:3:29 poll.cadence.Created: must be a duration from 1s to 365d',
    ],
    ['a bad factor', withLines('poll: { cadence: { whenPushIsHealthy: 4 } }'), 'must be a factor from x1 to x100'],
    ['a bad size', withLines('limits: { cacheBytes: 64 MB }'), 'must be a size from 0 to'],
    [
      'a bad cron field',
      withLines('poll: { cron: "* 25 * * *" }'),
      'five fields, or six with seconds first, such as "* * * * *"; wrong here: hour',
    ],
    ['a cron expression of too few fields', withLines('poll: { cron: "* * *" }'), 'must be a cron expression of five fields'],
    [
      'a cron expression without quotes',
      withLines('poll:', '  cron: * * * * *'),
      'relay.yaml:4:9 text that begins with * must be in quotes',
    ],
    [
      'a bad network',
      withLines('delivery: { allowNetworks: [10.0.0.0/33] }'),
      'relay.yaml:3:29 delivery.allowNetworks[0]: must be a network such as 10.0.0.0/8, an address, a host name, or an address with its port',
    ],
    ...['169.254.0.0/16', '169.254.169.254', '"[fe80::1]:80"', '"fe80::/10"'].map((never): [string, string, string] => [
      `a network that the relay never sends to (${never})`,
      withLines(`delivery: { allowNetworks: [${never}] }`),
      'delivery.allowNetworks[0]: is link-local, the range of cloud metadata services: the relay never sends there',
    ]),
    ...['100.100.100.200', '"fd00:ec2::254"'].map((never): [string, string, string] => [
      `the metadata service ${never}`,
      withLines(`delivery: { allowNetworks: [${never}] }`),
      'is a cloud metadata service, which hands out credentials',
    ]),
    ...['224.0.0.0/4', '0.0.0.0/8', '255.255.255.255', '"::ffff:0:0/96"', '"2002::/16"'].map((never): [string, string, string] => [
      `an address that no host has (${never})`,
      withLines(`delivery: { allowNetworks: [${never}] }`),
      'is not the address of a host',
    ]),
    [
      'an offset instead of a time zone',
      withLines('zone: "+01:00"'),
      'relay.yaml:3:7 zone: must be a time zone such as Europe/Stockholm or UTC',
    ],
    [
      'raw bytes that are deleted before the feed that refers to them',
      withLines('retention:', '  raw: 20d', '  feed: 30d'),
      'relay.yaml:4:8 retention.raw: is shorter than retention.feed, which is 30d (line 5)',
    ],
    [
      'a feed kept for less time than the default for deliveries',
      withLines('retention: { feed: 10d }'),
      'relay.yaml:3:20 retention.feed: is shorter than retention.deliveries, which is 30d (by default)',
    ],
    [
      'a feed kept for longer than the default for raw bytes',
      withLines('retention: { feed: 100d }'),
      'relay.yaml:3:20 retention.feed: is longer than retention.raw, which is 90d (by default)',
    ],
    ['a word that is not never or a duration', withLines('identifierReuseAfter: soon'), 'must be never, or a duration such as 180d'],
    ['a bad zone', withLines('poll: { quietHours: { from: "00:00", to: "05:00", zone: Mars } }'), 'must be a time zone'],
    [
      'quiet hours of no length',
      withLines('poll: { quietHours: { from: "05:00", to: "05:00" } }'),
      'relay.yaml:3:42 poll.quietHours.to: is the same as from',
    ],
    [
      'an unknown parameter in the address of the store',
      withLines('store: postgres://u:p@h/d?sslmod=require'),
      'relay.yaml:3:8 store: has a parameter in its address that is not known; known are application_name, ',
    ],
    ['a list of hosts', withLines('store: postgres://u:p@one,two/d'), 'relay.yaml:3:8 store: names several hosts, and the driver would'],
    ['a list of hosts with ports', withLines('store: postgresql://u:p@one:5432,two:5433/d'), 'relay.yaml:3:8 store: names several hosts'],
    ['a list of hosts in a parameter', withLines('store: postgres://u:p@/d?host=one,two'), 'relay.yaml:3:8 store: names several hosts'],
    [
      'a key that the libraries of Standard Webhooks refuse',
      withLines('endpoints:', '  - { name: a, url: "http://a/", signature: standard-webhooks, sharedKey: not-base-64-at-all-but-long }'),
      'relay.yaml:4:75 endpoints[0].sharedKey: must be Base64, with or without whsec_ before it',
    ],
    ['an unknown engine', withLines('store: mysql://h/d'), 'relay.yaml:3:8 store: must be sqlite:PATH or postgres://'],
    [
      'a webhook path the router would read as a pattern',
      minimal.replace('webhook: {', 'webhook: { path: "/x/:y",'),
      'webhook.path: must be a path',
    ],
    [
      'one port for both listeners',
      withLines('listen: { internal: { port: 8080 } }'),
      'relay.yaml:3:29 listen.internal.port: is also the port of listen.public',
    ],
    [
      'a language twice',
      minimal.replace('username', 'languages: [sv, SV], username'),
      'upstream.languages: must not name a language twice',
    ],
    ['a second document', `${minimal}---\na: 1\n`, 'relay.yaml:3:1 only one document is read'],
    ['no group at all', '- a\n', 'relay.yaml:1:1 must be a group of settings'],
    ['an alias without an anchor', withLines('log: *x'), 'relay.yaml:3:6 text that begins with * must be in quotes'],
    ['a tag', withLines('log: !js {}'), 'relay.yaml:3:6 text that begins with ! must be in quotes'],
    ['an open quote', withLines('store: "sqlite:x'), 'a closing quote, bracket, comma or colon is missing'],
    ['an open brace', withLines('log: { level: info', 'poll: {}'), 'relay.yaml:4:1 a closing } or ] is missing before this'],
    ['a line with a wrong indentation', withLines('log:', '  level: info', ' format: json'), 'relay.yaml:5:1 the indentation does not fit'],
    ['the key __proto__', withLines('__proto__: { level: debug }'), 'relay.yaml:3:1 (unusual name): is not a valid key'],
  ])('C2: refuses %s, and says where the mistake is', (_, text, expected) => {
    expect(headlinesOf(text).filter((line) => line.includes(expected))).toHaveLength(1)
  })

  test('C2: a tab is one problem, because what it indents cannot be read', () => {
    expect(headlinesOf('webhook:\n\tpath: x\n')).toEqual([expect.stringContaining('relay.yaml:2:1 a tab cannot indent: use spaces')])
  })

  test('C2: refuses a file that is missing, is a folder, or is not UTF-8', () => {
    expect(() => loadConfig('/nonexistent/relay.yaml', {})).toThrow(
      expect.objectContaining({
        problems: [expect.stringContaining('/nonexistent/relay.yaml:1:1 the config file cannot be read (there is no such file or folder)')],
      }),
    )
    expect(() => loadConfig('/', {})).toThrow(expect.objectContaining({ problems: [expect.stringContaining('(it is a folder)')] }))
    const path = fileOf(new Uint8Array([0xff, 0xfe, 0x61]), 'utf16.yaml')
    expect(() => loadConfig(path, {})).toThrow(expect.objectContaining({ problems: [expect.stringContaining('is not UTF-8 text')] }))
  })

  test('C2: refuses aliases that expand without end', () => {
    const lines = ['a: &a0 [x]', ...Array.from({ length: 12 }, (_, i) => `b${i}: &a${i + 1} [${`*a${i}, `.repeat(4)}]`)]
    expect(headlinesOf(withLines(...lines))).toEqual([expect.stringMatching(/aliases/)])
    expect(headlinesOf(withLines(...lines.slice(0, 9)))).toEqual([expect.stringMatching(/aliases/)])
  })
})

describe('settings', () => {
  test('every default is filled in, and the key of a number names its unit', () => {
    const { webhook, upstream, ...config } = load(minimal)
    expect(webhook).toMatchObject({ path: '/webhooks/status', bodyBytesMax: 262_144 })
    expect(upstream).toMatchObject({
      authUrl: 'https://carrier.example/auth/token',
      languages: ['en', 'sv'],
      timeoutMs: 10_000,
      ratePerSecond: 5,
      callsPerDay: 50_000,
      concurrency: 4,
      allowHttp: false,
      proxy: null,
      caFile: null,
    })
    expect(JSON.parse(JSON.stringify(config))).toEqual({
      listen: {
        public: { host: '0.0.0.0', port: 8080, tls: null, trustProxy: [] },
        internal: { host: '127.0.0.1', port: 8081, tls: null, trustProxy: [] },
      },
      store: { engine: 'sqlite', path: 'data/relay.db' },
      shutdownTimeoutMs: 10_000,
      poll: {
        cron: '* * * * *',
        cadence: {
          byStatusMs: { Created: 7_200_000, Ingested: 3_600_000, DeliveryStarted: 900_000 },
          defaultMs: 3_600_000,
          whenPushIsHealthy: 4,
        },
        finished: { tailMs: [3_600_000, 86_400_000, 259_200_000], staleAfterMs: 2_592_000_000 },
        missedPushGraceMs: 600_000,
        quietHours: null,
      },
      serve: { notFoundForMs: 300_000, fetchUnknown: true, fetchMissingLanguage: true, refreshOlderThanMs: null },
      apps: [],
      token: { lifetimeMs: 3_600_000 },
      endpoints: [],
      delivery: {
        scheduleMs: [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000],
        jitter: 0.2,
        timeoutMs: 15_000,
        perEndpoint: 8,
        removeAfterMs: 900_000,
        allowNetworks: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
      },
      secrets: { atRestKeys: [] },
      operator: null,
      portal: { enabled: true, publicUrl: null, trustedHeader: null, admins: [] },
      watchdogs: [],
      zone: 'UTC',
      retention: {
        rawMs: 7_776_000_000,
        historyMs: 34_560_000_000,
        deliveriesMs: 2_592_000_000,
        feedMs: 7_776_000_000,
        auditMs: 34_560_000_000,
        heldMs: 34_560_000_000,
        reportsMs: 158_112_000_000,
      },
      backup: { cron: null, directory: null, keep: 14 },
      identifierReuseAfterMs: 15_552_000_000,
      limits: {
        bodyBytesInFlight: 33_554_432,
        requestsWaiting: 2000,
        feedFollowers: 1000,
        connections: 4096,
        batch: 256,
        cacheBytes: 67_108_864,
        freeSpaceBytesMin: 268_435_456,
        failuresPerMinute: 600,
        unknownPerMinute: 600,
      },
      log: { level: 'info' },
      warnings: [],
      conflicts: [],
    })
  })

  test('a cadence for one status keeps the defaults of the others, and adds no other status', () => {
    const { cadence } = load(withLines('poll: { cadence: { TerminalArrived: 30m } }')).poll
    expect({ ...cadence.byStatusMs }).toEqual({
      Created: 7_200_000,
      Ingested: 3_600_000,
      DeliveryStarted: 900_000,
      TerminalArrived: 1_800_000,
    })
    expect(cadence.byStatusMs.constructor).toBeUndefined()
  })

  test('parcels that would go before what waits for them, or on their way, are a warning', () => {
    const warningsOf = (retention: string) => load(withLines(`retention: { ${retention} }`)).warnings
    expect(warningsOf('history: 30s')).toEqual([expect.stringContaining('is less than a day')])
    expect(warningsOf('history: 90d')).toEqual([expect.stringContaining('is shorter than retention.held (400d)')])
    expect(warningsOf('history: 90d, held: 90d')).toEqual([])
    expect(warningsOf('raw: 100d')).toEqual([])
  })

  test('warns of an unknown status in the cadence, and names the nearest one', () => {
    expect(load(withLines('poll: { cadence: { Creatd: 30m } }')).warnings).toEqual([
      expect.stringMatching(/relay\.yaml:3:28 poll\.cadence\.Creatd: is not a status .* did you mean Created\?/),
    ])
  })

  test('accepts a slash at the end of the base URL', () => {
    const { upstream } = load(minimal.replace('https://carrier.example', 'https://carrier.example/api/'))
    expect([upstream.baseUrl, upstream.authUrl]).toEqual(['https://carrier.example/api', 'https://carrier.example/api/auth/token'])
  })

  test.each([
    ['http://carrier.example', false],
    ['http://10.0.0.1', false],
    ['http://127.0.0.1.evil.example', false],
    ['http://localhost:1', true],
    ['http://127.0.0.9:8090/api', true],
    ['http://[::1]:8090', true],
    ['https://carrier.example', true],
  ])('T8: without allowHttp, a carrier at %s is accepted: %s', (url, starts) => {
    const text = minimal.replace('https://carrier.example', `"${url}"`)
    const refusals = headlinesOf(text).filter((line) => line.includes('upstream.baseUrl: must be https'))
    expect(refusals).toHaveLength(starts ? 0 : 1)
    expect(load(text.replace('username', 'allowHttp: true, username')).upstream.baseUrl).toBe(url)
  })

  test.each(['/v1', '/v1/', '/auth', '/auth/token', '/status', '/v1/status', '//v1//'])(
    'a baseUrl with %s at its end is refused, because every answer would be a 404',
    (end) => {
      const text = minimal.replace('carrier.example', `carrier.example/api${end}`)
      expect(headlinesOf(text)).toEqual([
        "relay.yaml:2:22 upstream.baseUrl: must end before the carrier's own paths, /v1/status and /auth/token, which the relay adds: write https://carrier.example/api",
      ])
    },
  )

  test('a baseUrl is accepted if v1, auth or status is not the whole last segment of its path', () => {
    for (const place of ['carrier.example/v1/carrier', 'carrier.example/statuses', 'carrier.example/auth.v1', 'status', 'v1.example'])
      expect(load(minimal.replace('carrier.example', place)).upstream.baseUrl).toBe(`https://${place}`)
  })

  test('T8: refuses to send the password to a plain-http authUrl', () => {
    const text = minimal.replace('username', 'authUrl: http://auth.example/token, username')
    expect(headlinesOf(text)).toEqual([expect.stringMatching(/upstream\.authUrl: must be https/)])
  })

  test.each([
    'carrier.example',
    'ftp://carrier.example',
    'https://user@carrier.example',
    'http:carrier',
    'https://x/#y',
    'https://x/?a=b',
    'https://x:0',
    'https://',
  ])('refuses %s as the base URL', (url) => {
    expect(headlinesOf(minimal.replace('https://carrier.example', `"${url}"`))).toEqual([expect.stringContaining('upstream.baseUrl: must')])
  })

  test.each([
    '10.0.0.0/8',
    '0.0.0.0/0',
    '::/0',
    '127.0.0.1',
    'localhost',
    'hooks.internal',
    'a-b.example.com',
    '127.0.0.1:9000',
    '[::1]:9000',
  ])('allows endpoints at %s', (target) => {
    expect(load(withLines(`delivery: { allowNetworks: ["${target}"] }`)).delivery.allowNetworks).toEqual([target])
  })

  test.each(['not a host', 'http://x', 'x:80', '10.1', '-a.example', '127.0.0.1:0', '127.0.0.1:70000', ''])(
    'does not allow endpoints at %j',
    (target) => {
      expect(headlinesOf(withLines(`delivery: { allowNetworks: ["${target}"] }`))).toEqual([
        expect.stringMatching(/allowNetworks\[0\]: must (be a network|have a port)/),
      ])
    },
  )

  test('reads both kinds of store', () => {
    expect(load(withLines('store: sqlite:/var/lib/relay.db')).store).toEqual({ engine: 'sqlite', path: '/var/lib/relay.db' })
    const { store } = load(withLines('store: { env: DATABASE_URL }'), { DATABASE_URL: 'postgres://u:p@h:5432/db' })
    expect(store.engine === 'postgres' && store.url.reveal()).toBe('postgres://u:p@h:5432/db')
  })

  test('a store on PostgreSQL needs at-rest keys, because no key file can lie beside it', () => {
    const postgres = 'store: postgres://u:p@h/db'
    expect(load(minimal).conflicts).toEqual([])
    const [problem = '', ...others] = load(withLines(postgres)).conflicts
    expect(problem).toMatch(/relay\.yaml:3:8 store: names PostgreSQL, which needs secrets\.atRestKeys/)
    expect(problem).not.toContain('u:p@')
    expect(others).toEqual([])
    const key = Buffer.alloc(32, 7).toString('base64')
    expect(load(withLines(postgres, 'secrets: { atRestKeys: [{ env: KEY }] }'), { KEY: key }).conflicts).toEqual([])
  })
})
