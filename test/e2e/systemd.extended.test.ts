import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LAUNCH } from '../../bench/servers/relay.ts'
import { loadConfig } from '../../src/config/config.ts'
import { documentedCommands } from '../support/docs/shell-session.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

// These tests check config/systemd as far as that goes without a system that systemd has started.

const UNIT = 'config/systemd/parcel-relay.service'
const unit = readFileSync(UNIT, 'utf8')
const all = (key: string) => [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
const only = (key: string) => all(key).join('\n')

test('the unit starts the relay as it is measured, restarts it always, and waits for its stop', () => {
  const [node, ...words] = only('ExecStart').split(' ')
  expect([node, words.slice(0, 1 + LAUNCH.flags.length)]).toEqual(['/usr/bin/node', ['--enable-source-maps', ...LAUNCH.flags]])
  for (const [name, value] of Object.entries(LAUNCH.env)) expect(only('Environment').split(' ')).toContain(`${name}=${value}`)
  expect([only('Restart'), only('StartLimitIntervalSec'), only('ExecReload')]).toEqual(['always', '0', '/bin/kill -HUP $MAINPID'])
  const { shutdownTimeoutMs, limits } = loadConfig(writeConfig(temporaryFolder(), NO_CARRIER))
  // The relay itself ends what hangs ten seconds after that.
  expect(Number.parseInt(only('TimeoutStopSec'), 10) * 1000).toBeGreaterThan(shutdownTimeoutMs + 10_000)
  expect(Number(only('LimitNOFILE'))).toBeGreaterThan(2 * limits.connections)
})

test('each secret of the config for systemd is a credential that the unit loads, and the reverse', () => {
  const asked = [...readFileSync('config/systemd/relay.yaml', 'utf8').matchAll(/file: \/run\/credentials\/parcel-relay\.service\/(\w+)/g)]
  expect(all('LoadCredential')).toEqual(asked.map(([, name]) => `${name}:/etc/parcel-relay/secrets/${name}`))
  const steps = documentedCommands('docs/operating.md', 'systemd').join('\n')
  expect([...steps.matchAll(/\/dev\/stdin \/etc\/parcel-relay\/secrets\/(\w+)/g)].map(([, name]) => name)).toEqual(
    asked.map(([, name]) => name),
  )
})

testWith('systemd-analyze')('systemd finds no fault in the unit, and rates its exposure at most 1.5', () => {
  const file = join(temporaryFolder(), 'parcel-relay.service')
  // It looks for the program, too.
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
