import { cpSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { verify } from '@node-rs/argon2'
import { afterAll, expect, test } from 'vitest'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { documentedCommands, failedOf, headerCommands, typeInShell } from '../support/docs/shell-session.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { ADMIN, SHOP } from '../support/relay/relay.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

// These tests run the documented commands for Docker in a shell. A script stands in for `docker`, and runs the relay on this machine.

afterAll(closeOpened)

/** Makes a folder with the shipped files of `config/`, and an environment in which `docker` starts that script. */
async function startDouble() {
  const folder = temporaryFolder()
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  cpSync('config', join(folder, 'config'), { recursive: true, filter: (path) => !path.endsWith('relay.yaml') })
  symlinkSync(resolve('test/support/docs/docker-double.sh'), join(bin, 'docker'))
  // Only root may change the owner of a file, so replace `sudo` and `chown`.
  for (const [name, script] of [
    ['sudo', '#!/bin/sh\nexec "$@"\n'],
    ['chown', '#!/bin/sh\n'],
  ] as const)
    writeFileSync(join(bin, name), script, { mode: 0o755 })
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    DOUBLE_ROOT: folder,
    DOUBLE_NODE: process.execPath,
    DOUBLE_PROGRAM: shipped().program,
    DOUBLE_PORTS: `${await freePort()} ${await freePort()}`,
  }
  return { folder, env }
}

test('the steps of compose.scaled.yaml make every secret, and show no password', async () => {
  const { folder, env } = await startDouble()
  const steps = headerCommands('compose.scaled.yaml')
  const [before] = [
    steps.slice(
      0,
      steps.findIndex((step) => step.includes(' up -d')),
    ),
  ]
  const typed = await typeInShell(before, { cwd: folder, env, answers: ['at the carrier', SHOP.password, ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  expect(typed.map(({ output }) => output).join('')).toBe('')
  const secretOf = (name: string) => readFileSync(join(folder, 'secrets', name), 'utf8').trim()
  expect(secretOf('upstream_password')).toBe('at the carrier')
  expect(secretOf('database_url')).toBe(`postgres://relay:${secretOf('database_password')}@database:5432/relay`)
  expect(await verify(secretOf('admin_password_hash'), ADMIN.password)).toBe(true)
  expect(statSync(join(folder, 'secrets', 'shared_key')).mode & 0o777).toBe(0o400)
  const path = join(folder, 'config', 'relay.yaml')
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll('/run/secrets', join(folder, 'secrets')))
  expect(loadConfig(path, {}).warnings).toEqual([])
})

test('the documented steps of a container install, check, back up, upgrade and restore a relay', async () => {
  const carrier = await openCarrier()
  const { folder, env } = await startDouble()
  const steps = headerCommands('compose.yaml')
  const first = steps.findIndex((step) => step.startsWith('export '))
  const [build = '', copy = '', ...install] = steps.slice(0, first)
  const edit = `sed -i 's#https://carrier.example#${carrier.url}#' config/relay.yaml`
  const documented = [...documentedCommands('docs/operating.md', 'container'), ...documentedCommands('docs/upgrading.md', 'upgrade')]
  const typed = await typeInShell([build, copy, edit, ...install, ...documented], {
    cwd: folder,
    env,
    answers: ['a-carrier-password', SHOP.password, ADMIN.password, ADMIN.password, 'another password', ADMIN.password],
  })
  expect(failedOf(typed)).toEqual([])
  const outputOf = (part: string) => typed.find(({ command }) => command.includes(part))?.output
  expect(outputOf('parcel-relay check')).toMatch(/^ok +credentials/m)
  expect(typed.findLast(({ command }) => command.includes('hash-password'))?.output).toMatch(/^\$argon2id\$/)
  expect(outputOf('parcel-relay backup')).toContain('checked and complete')
  for (const name of ['today', 'before-upgrade']) {
    expect(statSync(join(folder, `${name}.db`)).size).toBeGreaterThan(0)
    expect(outputOf(`relay restore /data/backups/${name}.db`)).toContain(name)
  }
  const last = readFileSync(join(folder, 'log'), 'utf8')
  expect(last).toContain('"msg":"relay ready"')
})
