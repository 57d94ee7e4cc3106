import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import { expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { HASH } from '../console/cli/config-cases.ts'
import { pushBody } from '../support/history/builders.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { ask, logIn, type RelayProcess, SHARED_KEY, SHOP, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

// These tests do not run Docker. They read compose.scaled.yaml, and start the relays and the proxy themselves.

const replica = z.object({
  image: z.string(),
  restart: z.literal('always'),
  read_only: z.literal(true),
  mem_limit: z.string().regex(/^\d+[mg]$/),
  stop_grace_period: z.string().regex(/^\d+s$/),
  environment: z.object({ HEALTH_URL: z.string() }),
  ports: z.tuple([z.string()]),
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
        networks: z.object({ default: z.object({ ipv4_address: z.string() }) }),
        restart: z.literal('always'),
        ports: z.array(z.string()),
        volumes: z.array(z.string()),
        depends_on: z.array(z.string()),
        mem_limit: z.string(),
      }),
    }),
    networks: z.object({
      default: z.object({ ipam: z.object({ config: z.tuple([z.object({ subnet: z.string(), ip_range: z.string() })]) }) }),
    }),
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

/** Writes the shipped config to a folder, with the secrets as files beside it. */
function followToTheLetter(databaseUrl: string): string {
  const folder = temporaryFolder()
  for (const [name, secret] of Object.entries({ ...GIVEN, database_url: databaseUrl }))
    writeFileSync(join(folder, name), `${secret}\n`, { mode: 0o400 })
  const path = join(folder, 'relay.yaml')
  writeFileSync(path, shippedConfig.replaceAll('/run/secrets', folder))
  return path
}

test('the replicas of compose.scaled.yaml are alike and run the image of compose.yaml', () => {
  expect({ ...services['relay-2'], ports: relay.ports }).toEqual(relay)
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
  // The image of PostgreSQL 18 keeps its data in a subfolder of this folder.
  expect([database.image, database.volumes]).toEqual(['postgres:18', ['database:/var/lib/postgresql']])
})

test('the config for compose.scaled.yaml names its database, its ports and its network', () => {
  const { POSTGRES_USER: user = '', POSTGRES_DB: name = '' } = database.environment
  const [, step = ''] = /echo "(postgres:.*)" > secrets\/database_url/.exec(readFileSync('compose.scaled.yaml', 'utf8')) ?? []
  expect(step).toBe(`postgres://${user}:$(cat secrets/database_password)@database:5432/${name}`)
  const config = loadConfig(followToTheLetter(step.replace(/\$\(.*\)/, 'a1b2')), {})
  expect([config.warnings, config.conflicts]).toEqual([[], []])
  const { public: open, internal } = config.listen
  const address = proxy.networks.default.ipv4_address
  expect([open.trustProxy, internal.trustProxy]).toEqual([[`${address}/32`], [`${address}/32`]])
  const [{ subnet, ip_range: others }] = networks.default.ipam.config
  expect([subnet, others].map((range) => ipaddr.parse(address).match(ipaddr.parseCIDR(range)))).toEqual([true, false])
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

test('each replica has its own local port for metrics, which the Caddyfile names', () => {
  const own = [services['relay-1'], services['relay-2']].map(({ ports: [port] }) => /^127\.0\.0\.1:(\d+):8081$/.exec(port)?.[1])
  expect([new Set(own).size, own.includes(undefined)]).toEqual([2, false])
  const [refusal = ''] = /^\trespond \/metrics .*$/m.exec(caddyfile) ?? []
  expect(refusal).toMatch(/ 404$/)
  for (const text of [refusal, readFileSync('docs/scaling.md', 'utf8')]) expect(text).toContain(`127.0.0.1:${own[0]} and :${own[1]}`)
})

/** Returns the shipped Caddyfile with the addresses of these replicas. */
function caddyfileFor(replicas: readonly RelayProcess[], [open, internal]: readonly [number, number]): string {
  const ports = new Map(replicas.map(({ publicUrl, internalUrl }, at) => [`relay-${at + 1}`, { 8080: publicUrl, 8081: internalUrl }]))
  const urlOf = (name: string, port: string) => new URL(ports.get(name)?.[port === '8080' ? 8080 : 8081] ?? '')
  const here = caddyfile
    .replace('{$RELAY_HOST} {', `http://127.0.0.1:${open} {`)
    .replace('http://:8081 {', `http://127.0.0.1:${internal} {`)
    .replace('health_port 8081', `health_port ${urlOf('relay-1', '8081').port}`)
    .replaceAll(/(relay-\d):(\d+)/g, (_, name: string, port: string) => urlOf(name, port).host)
  return `{\n\tadmin off\n\tauto_https off\n}\n${here}`
}

testWith('caddy')('the proxy passes pushes to the other replica when one is gone, and passes no metrics', async () => {
  const folder = temporaryFolder()
  const [open, internal, port] = [await freePort(), await freePort(), await freePort()]
  // The health check uses the same port for both replicas, so give them different addresses.
  const replicas = await Promise.all(
    ['127.0.1.1', '127.0.1.2'].map((host) =>
      spawnRelay(writeConfig(temporaryFolder(), NO_CARRIER, { listen: { public: { host, port: 0 }, internal: { host, port } } })),
    ),
  )
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, caddyfileFor(replicas, [open, internal]))
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  tieToTest(spawn('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], { ...ownGroup, env, stdio: 'ignore' }))
  const answers = async (url: string) => {
    const answer = await fetch(url)
    return [answer.status, await answer.text()] as const
  }
  await vi.waitFor(async () => expect(await answers(`http://127.0.0.1:${internal}/readyz`)).toMatchObject([200, expect.any(String)]))
  expect(await answers(`http://127.0.0.1:${open}/metrics`)).toMatchObject([404, expect.any(String)])
  expect(await answers(`http://127.0.0.1:${internal}/metrics`)).toEqual([404, expect.stringContaining('by itself')])
  const body = pushBody()
  const headers = { 'x-service-hmac-sha256': signBody(Buffer.from(body), SHARED_KEY) }
  const statusOfPush = async () => (await fetch(`http://127.0.0.1:${open}/webhooks/status`, { method: 'POST', body, headers })).status
  expect(await statusOfPush()).toBe(200)
  replicas[0]?.process.kill('SIGKILL')
  await replicas[0]?.ended
  // An older Caddy answers 502 until its health check notices that a replica is gone.
  await vi.waitFor(async () => {
    for (let at = 0; at < 4; at++) expect(await statusOfPush()).toBe(200)
  })
})

test('two relays with the scaled config share a database, are both ready and see each other', async () => {
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
