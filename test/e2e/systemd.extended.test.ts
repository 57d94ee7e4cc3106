import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, expect, test } from 'vitest'
import { LAUNCH } from '../../bench/servers/relay.ts'
import { VERSION } from '../../src/package-files.ts'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { checkoutOfTest } from '../support/docs/checkout.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { ADMIN, CARRIER_LOGIN, SHOP, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

// These tests check config/systemd, even on a machine that does not run systemd.

afterAll(closeOpened)

const UNIT = 'config/systemd/parcel-relay.service'
const unit = readFileSync(UNIT, 'utf8')
const all = (key: string) => [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
const only = (key: string) => all(key).join('\n')

test('the unit starts Node as the benchmarks do, always restarts it, and waits until it stops', () => {
  const [node, ...words] = only('ExecStart').split(' ')
  expect([node, words.slice(0, 1 + LAUNCH.flags.length)]).toEqual(['/usr/bin/node', ['--enable-source-maps', ...LAUNCH.flags]])
  for (const [name, value] of Object.entries(LAUNCH.env)) expect(only('Environment').split(' ')).toContain(`${name}=${value}`)
  expect([only('Restart'), only('StartLimitIntervalSec'), only('ExecReload')]).toEqual(['always', '0', '/bin/kill -HUP $MAINPID'])
  const { shutdownTimeoutMs, limits } = loadConfig(writeConfig(temporaryFolder(), NO_CARRIER))
  // The relay forces its own end ten seconds after its stop timeout.
  expect(Number.parseInt(only('TimeoutStopSec'), 10) * 1000).toBeGreaterThan(shutdownTimeoutMs + 10_000)
  expect(Number(only('LimitNOFILE'))).toBeGreaterThan(2 * limits.connections)
})

test('the unit loads exactly the secrets that the config for systemd names', () => {
  const asked = [...readFileSync('config/systemd/relay.yaml', 'utf8').matchAll(/file: \/run\/credentials\/parcel-relay\.service\/(\w+)/g)]
  expect(all('LoadCredential')).toEqual(asked.map(([, name]) => `${name}:/etc/parcel-relay/secrets/${name}`))
  const steps = documentedCommands('docs/operating.md', 'systemd').join('\n')
  expect([...steps.matchAll(/\/dev\/stdin \/etc\/parcel-relay\/secrets\/(\w+)/g)].map(([, name]) => name)).toEqual(
    asked.map(([, name]) => name),
  )
})

testWith('systemd-analyze')('systemd-analyze finds no fault in the unit, and rates its exposure at most 1.5', () => {
  const file = join(temporaryFolder(), 'parcel-relay.service')
  // The check requires that the program exists.
  writeFileSync(file, unit.replace('/usr/bin/node', process.execPath))
  expect(execFileSync('systemd-analyze', ['verify', file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).toBe('')
  execFileSync('systemd-analyze', ['security', '--offline=true', '--threshold=15', file], { stdio: 'ignore' })
})

testWith('caddy')('the proxy of config/systemd is a Caddyfile for the public listener of its config', () => {
  const path = 'config/systemd/Caddyfile'
  execFileSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', path], {
    stdio: 'ignore',
    env: { ...process.env, HOME: temporaryFolder() },
  })
  expect(readFileSync('config/systemd/relay.yaml', 'utf8')).toContain('public: { host: 127.0.0.1, port: 8080, trustProxy: [127.0.0.1/32] }')
  expect(readFileSync(path, 'utf8')).toMatch(/^\treverse_proxy 127\.0\.0\.1:8080 \{$/m)
})

/** Puts the system paths in the arguments of `sudo` below a folder, because only root may write to the real paths. */
const sudoBelow = (root: string) => `
case $1 in useradd | systemctl) echo "$*" >> ${root}/ordered; exit ;; esac
words=()
for word in "$@"; do case $word in /etc/* | /opt/* | /usr/local/* | /var/*) word=${root}$word ;; esac; words+=("$word"); done
exec "\${words[@]}"`

testWith('bash')('the steps for systemd install the package, and the unit’s command starts and reloads', async () => {
  const carrier = await openCarrier()
  const { folder, root, double, path } = checkoutOfTest()
  packEarlier(folder)
  for (const name of ['etc/systemd/system', 'usr/local/bin', 'var/lib/parcel-relay', 'opt'])
    mkdirSync(join(root, name), { recursive: true })
  double('sudo', sudoBelow(root))
  const [open, internal] = [await freePort(), await freePort()]
  const credentials = join(root, 'etc/parcel-relay/secrets')
  const config = join(root, 'etc/parcel-relay/relay.yaml')
  const edit = `sed -i 's#https://carrier.example#${carrier.url}#; s/username: acme/username: ${CARRIER_LOGIN.username}/; s/port: 8080/port: ${open}/; s/port: 8081/port: ${internal}/; s#/run/credentials/parcel-relay.service#${credentials}#; s#/var/lib#${root}/var/lib#' ${config}`
  const steps = documentedCommands('docs/operating.md', 'systemd')
  const asking = steps.findIndex((step) => step.startsWith('export RELAY_URL'))
  const env = {
    ...waysToRegistry(),
    PATH: `${join(root, 'usr/local/bin')}:${path}`,
    HOME: process.env.HOME,
    npm_config_cache: npmCache(),
    npm_config_prefer_offline: 'true',
  }
  const installed = await typeInShell([...steps.slice(0, asking), edit], {
    cwd: folder,
    env,
    answers: [CARRIER_LOGIN.password, SHOP.password, ADMIN.password],
  })
  expect(failedOf(installed)).toEqual([])
  expect(readFileSync(join(root, 'ordered'), 'utf8')).toMatch(
    /^useradd .*\nsystemctl daemon-reload\nsystemctl enable --now parcel-relay\n$/,
  )
  expect(readFileSync(join(root, 'etc/systemd/system/parcel-relay.service'), 'utf8')).toBe(unit)
  expect(statSync(join(credentials, 'shared_key')).mode & 0o777).toBe(0o600)

  const [, ...words] = only('ExecStart')
    .replaceAll(/\/(opt|etc)\//g, `${root}/$1/`)
    .split(' ')
  expect(words.filter((word) => word.startsWith(root)).filter((word) => !existsSync(word))).toEqual([])
  const child = tieToTest(
    spawn(process.execPath, words, {
      ...ownGroup,
      cwd: join(root, 'var/lib/parcel-relay'),
      env: { ...LAUNCH.env },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const log = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await untilLine(log, '"msg":"relay ready"')
  const asked = await typeInShell(
    steps.slice(asking).map((step) => step.replace(':8081', `:${internal}`)),
    { cwd: folder, env, answers: [ADMIN.password] },
  )
  expect(failedOf(asked)).toEqual([])
  expect(asked.at(-1)?.output).toMatch(/^ok +credentials/m)
  child.kill('SIGHUP')
  await untilLine(log, 'config reloaded')
  const backedUp = await typeInShell(['parcel-relay backup today'], {
    cwd: folder,
    env: { ...env, RELAY_URL: `http://127.0.0.1:${internal}`, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password },
  })
  expect(failedOf(backedUp)).toEqual([])
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])

  // systemd takes the credentials away, and the folder of the store belongs to the user of the unit.
  rmSync(credentials, { recursive: true })
  const state = join(root, 'var/lib/parcel-relay')
  const files = () => readdirSync(state).filter((name) => name.startsWith('relay.db'))
  if (IS_ROOT) for (const path of [state, ...files().map((name) => join(state, name))]) chownSync(path, OWNER, OWNER)
  const restored = await typeInShell(
    documentedCommands('docs/operating.md', 'systemd-restore').map((step) => step.replace('NAME', 'today')),
    { cwd: folder, env },
  )
  expect(failedOf(restored)).toEqual([])
  expect(restored.at(1)?.output).toContain('The store is as it was in the backup "today"')
  const owners = new Set(files().map((name) => statSync(join(state, name)).uid))
  expect([...owners]).toEqual([IS_ROOT ? OWNER : process.getuid?.()])

  const version = documentedCommands('docs/upgrading.md', 'systemd-upgrade').map((step) =>
    step.replace(/^\/usr\/bin\/node \/opt/, `node ${root}/opt`),
  )
  const upgraded = await typeInShell(version, { cwd: folder, env })
  expect(failedOf(upgraded)).toEqual([])
  expect(upgraded.at(2)?.output.trim()).toBe(VERSION)
})

const IS_ROOT = process.getuid?.() === 0
/** A user id without a name, as of a user that another machine has. */
const OWNER = 54_321

/** Leaves the package of an earlier version in a folder, as an upgrade finds it there. */
function packEarlier(folder: string): void {
  const earlier = join(temporaryFolder(), 'package')
  mkdirSync(earlier)
  writeFileSync(join(earlier, 'package.json'), JSON.stringify({ name: 'parcel-relay', version: '0.0.9' }))
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: earlier })
}

/** The variables by which this machine reaches the registry of npm. */
const waysToRegistry = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|(https?|no)_proxy)$/i.test(name)))

const npmCache = () => execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim()

async function untilLine(log: AsyncIterator<string>, part: string): Promise<void> {
  for (let line = await log.next(); line.done !== true; line = await log.next()) if (line.value.includes(part)) return
  throw new Error(`it ended before it logged ${part}`)
}
