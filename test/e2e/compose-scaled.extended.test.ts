import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { loadConfig } from '../../src/config/config.ts'
import { HASH } from '../cli/config-cases.ts'
import { ask, logIn, SHOP, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

// These tests check compose.scaled.yaml as far as that goes without Docker.

const replica = z.object({
  image: z.string(),
  restart: z.literal('always'),
  read_only: z.literal(true),
  mem_limit: z.string().regex(/^\d+[mg]$/),
  stop_grace_period: z.string().regex(/^\d+s$/),
  environment: z.object({ HEALTH_URL: z.string() }),
  volumes: z.tuple([z.literal('./config:/config:ro')]),
  secrets: z.array(z.string()),
  depends_on: z.object({ database: z.object({ condition: z.literal('service_healthy') }) }),
})
const { services, networks, volumes, secrets } = z
  .object({
    services: z.object({
      'relay-1': replica,
      'relay-2': replica,
      database: z.object({
        restart: z.literal('always'),
        image: z.string(),
        command: z.array(z.string()),
        environment: z.record(z.string(), z.string()),
        secrets: z.array(z.string()),
        volumes: z.array(z.string()),
        mem_limit: z.string(),
        healthcheck: z.object({ test: z.array(z.string()) }),
      }),
      proxy: z.object({
        restart: z.literal('always'),
        ports: z.array(z.string()),
        volumes: z.array(z.string()),
        depends_on: z.array(z.string()),
        mem_limit: z.string(),
      }),
    }),
    networks: z.object({ default: z.object({ ipam: z.object({ config: z.tuple([z.object({ subnet: z.string() })]) }) }) }),
    volumes: z.record(z.string(), z.unknown()),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
  })
  .parse(parse(readFileSync('compose.scaled.yaml', 'utf8'), { merge: true }))
const { 'relay-1': relay, database, proxy } = services
const shippedConfig = readFileSync('config/container.scaled.yaml', 'utf8')
const caddyfile = readFileSync('config/Caddyfile', 'utf8')
const namedIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name)

const GIVEN: Readonly<Record<string, string>> = {
  at_rest_key: Buffer.alloc(32, 7).toString('base64'),
  shared_key: 'a-shared-key-of-sixteen-bytes',
  upstream_password: 'a-password',
  shop_password_hash: HASH,
  admin_password_hash: HASH,
}

/** The shipped config in a folder, with the secrets as files beside it. */
function followToTheLetter(databaseUrl: string): string {
  const folder = temporaryFolder()
  for (const [name, secret] of Object.entries({ ...GIVEN, database_url: databaseUrl }))
    writeFileSync(join(folder, name), `${secret}\n`, { mode: 0o400 })
  const path = join(folder, 'relay.yaml')
  writeFileSync(path, shippedConfig.replaceAll('/run/secrets', folder))
  return path
}

test('the replicas of compose.scaled.yaml are alike and run the image of compose.yaml', () => {
  expect(services['relay-2']).toEqual(relay)
  const single = z
    .object({ services: z.object({ relay: z.object({ image: z.string() }) }) })
    .parse(parse(readFileSync('compose.yaml', 'utf8')))
  expect(relay.image).toBe(single.services.relay.image)
  const { shutdownTimeoutMs } = loadConfig(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
  expect(Number.parseInt(relay.stop_grace_period, 10) * 1000).toBeGreaterThan(shutdownTimeoutMs)
})

test('each secret and volume of compose.scaled.yaml exists, is used and is explained', () => {
  const steps = namedIn(readFileSync('compose.scaled.yaml', 'utf8'), /^#.*> secrets\/(\w+)/gm)
  expect(Object.keys(secrets).toSorted()).toEqual([...relay.secrets, ...database.secrets].toSorted())
  expect(steps.toSorted()).toEqual(Object.keys(secrets).toSorted())
  for (const [name, { file }] of Object.entries(secrets)) expect(file).toBe(`./secrets/${name}`)
  expect(namedIn(shippedConfig, /\/run\/secrets\/(\w+)/g).toSorted()).toEqual(relay.secrets.toSorted())
  expect(database.environment.POSTGRES_PASSWORD_FILE).toBe(`/run/secrets/${database.secrets[0]}`)
  const mounted = [...database.volumes, ...proxy.volumes]
    .filter((volume) => !volume.startsWith('.'))
    .map((volume) => volume.split(':')[0] ?? '')
  expect(mounted.toSorted()).toEqual(Object.keys(volumes).toSorted())
  // The image of PostgreSQL 18 keeps its data in a folder of this one.
  expect([database.image, database.volumes]).toEqual(['postgres:18', ['database:/var/lib/postgresql']])
})

test('the config for it names its database, its ports and its network', () => {
  const { POSTGRES_USER: user = '', POSTGRES_DB: name = '' } = database.environment
  const [, step = ''] = /echo "(postgres:.*)" > secrets\/database_url/.exec(readFileSync('compose.scaled.yaml', 'utf8')) ?? []
  expect(step).toBe(`postgres://${user}:$(cat secrets/database_password)@database:5432/${name}`)
  const config = loadConfig(followToTheLetter(step.replace(/\$\(.*\)/, 'a1b2')), {})
  expect([config.warnings, config.conflicts]).toEqual([[], []])
  const { public: open, internal } = config.listen
  const [{ subnet }] = networks.default.ipam.config
  expect([open.trustProxy, internal.trustProxy]).toEqual([[subnet], [subnet]])
  expect(relay.environment.HEALTH_URL).toBe(`http://127.0.0.1:${internal.port}/readyz`)
  expect(readFileSync('Dockerfile', 'utf8')).toMatch(/^HEALTHCHECK[^\n]*\\\n.*process\.env\.HEALTH_URL/m)
  expect(database.healthcheck.test).toEqual(['CMD', 'pg_isready', '--host=127.0.0.1', `--username=${user}`, `--dbname=${name}`])
  const connections = database.command.flatMap((word) => /^max_connections=(\d+)$/.exec(word)?.[1] ?? [])
  expect(Number(connections[0])).toBeGreaterThan(3 * 18)
})

test('the proxy sends to both replicas while their /readyz says that they are ready', () => {
  const { public: open, internal } = loadConfig(followToTheLetter('postgres://relay:a1b2@database:5432/relay'), {}).listen
  expect(namedIn(caddyfile, /^\treverse_proxy (.*) \{$/gm)).toEqual(
    [open.port, internal.port].map((port) => `relay-1:${port} relay-2:${port}`),
  )
  expect(namedIn(caddyfile, /health_uri (\S+)/g)).toEqual(['/readyz'])
  expect(namedIn(caddyfile, /health_port (\d+)/g)).toEqual([String(internal.port)])
  expect(namedIn(caddyfile, /^http:\/\/:(\d+) /gm)).toEqual([String(internal.port)])
  expect(proxy.ports).toEqual(['80:80', '443:443', `127.0.0.1:${internal.port}:${internal.port}`])
  expect(proxy.volumes).toContain('./config/Caddyfile:/etc/caddy/Caddyfile:ro')
  expect(proxy.depends_on).toEqual(['relay-1', 'relay-2'])
})

test('two relays with that config share a database: both are ready and see each other', async () => {
  const { url } = await createDatabase('nothing')
  const path = followToTheLetter(url)
  writeFileSync(
    path,
    readFileSync(path, 'utf8')
      .replace(/port: \d+/g, 'port: 0')
      .concat('log: { level: info }\n'),
  )
  const relays = await Promise.all([spawnRelay(path), spawnRelay(path)])
  for (const { internalUrl } of relays) {
    expect((await fetch(`${internalUrl}/readyz`)).status).toBe(200)
    const seen = await ask(internalUrl, await logIn(internalUrl, { ...SHOP, username: 'admin' }), '/relay/replicas')
    expect(await seen.json()).toMatchObject({ replicas: [{}, {}] })
  }
  for (const { process: child, ended } of relays) {
    child.kill('SIGTERM')
    expect(await ended).toEqual({ code: 0, signal: null })
  }
})
