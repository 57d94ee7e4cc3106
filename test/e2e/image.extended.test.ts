import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { LAUNCH } from '../../bench/servers/relay.ts'
import { HASH } from '../console/cli/config-cases.ts'
import { listen } from '../support/network/listen.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

interface Instruction {
  readonly word: string
  readonly rest: string
}

const instructions: readonly Instruction[] = readFileSync('Dockerfile', 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => ({ word: line.split(' ', 1)[0] ?? '', rest: line.slice(line.indexOf(' ') + 1) }))
const all = (word: string) => instructions.filter((instruction) => instruction.word === word).map(({ rest }) => rest)
const commandOf = (text: string) => z.array(z.string()).parse(JSON.parse(text.slice(text.indexOf('['))))

const manifest = z
  .object({
    bin: z.record(z.string(), z.string()),
    scripts: z.record(z.string(), z.string()),
    devDependencies: z.record(z.string(), z.string()),
  })
  .parse(JSON.parse(readFileSync('package.json', 'utf8')))

test('every path that the Dockerfile copies exists and comes from a stage that exists', () => {
  const letIn = readFileSync('.dockerignore', 'utf8').split('\n')
  expect(letIn).toContain('*')
  const stages = all('FROM').flatMap((from) => / AS (\w+)$/.exec(from)?.[1] ?? [])
  const copies = all('COPY').map((rest) => rest.split(' '))
  expect(copies.length).toBeGreaterThan(5)
  for (const [first = '', ...others] of copies) {
    const stage = /^--from=(\w+)$/.exec(first)?.[1]
    if (stage !== undefined) expect(stages).toContain(stage)
    else
      for (const path of [first, ...others.slice(0, -1)])
        expect([path, existsSync(path), letIn.includes(`!${path}`)]).toEqual([path, true, true])
  }
})

test('the Dockerfile builds, installs and starts with the commands of package.json', () => {
  expect(all('FROM').map((from) => from.split(' ', 1)[0])).toEqual(
    all('FROM').map(() => `node:${manifest.devDependencies.node}-trixie-slim`),
  )
  const scripts = all('RUN').flatMap((command) => [...command.matchAll(/npm run (\S+)/g)].map(([, name = '']) => name))
  expect(scripts).toEqual(['build'])
  for (const name of scripts) expect(manifest.scripts).toHaveProperty(name)
  expect(commandOf(all('ENTRYPOINT').join())).toEqual(['node', '--enable-source-maps', ...LAUNCH.flags, manifest.bin['parcel-relay']])
  expect(commandOf(all('CMD').join()).slice(0, 2)).toEqual(['serve', '--config'])
})

test('the image and `npm start` run Node with the options that the measurements use', () => {
  const set = Object.entries(LAUNCH.env).map(([name, value]) => `${name}=${value}`)
  expect(all('ENV')).toEqual(expect.arrayContaining(set))
  expect(manifest.scripts.start).toBe(['exec env', ...set, 'node', ...LAUNCH.flags, 'src/main.ts serve'].join(' '))
})

test('the container runs as a user without rights, and keeps the default store in its volume', () => {
  expect([all('USER'), all('VOLUME'), all('STOPSIGNAL')]).toEqual([['1000:1000'], ['/data'], ['SIGTERM']])
  const last = instructions.slice(instructions.findLastIndex(({ word }) => word === 'FROM'))
  expect(last.some(({ rest }) => rest.includes('&& ln -s /data data'))).toBe(true)
  const { store } = loadConfig(writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { store: 'sqlite:data/relay.db' }))
  expect(store).toEqual({ engine: 'sqlite', path: 'data/relay.db' })
})

test('the image has parcel-relay on its PATH, so that `docker exec` runs any command', () => {
  const [, target = '', link = ''] = all('RUN').flatMap((command) => /ln -s (\/app\/\S+) (\S+)$/.exec(command) ?? [])
  expect([target, link]).toEqual([`/app/${manifest.bin['parcel-relay']}`, '/usr/local/bin/parcel-relay'])
  const bin = temporaryFolder()
  symlinkSync(shipped().program, join(bin, basename(link)))
  const env = { PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin` }
  expect(execFileSync(join(bin, basename(link)), ['generate-key'], { cwd: bin, env, encoding: 'utf8' })).toMatch(/^[\w+/]{43}=\n$/)
})

test('the image holds no secret and no operator’s config', () => {
  const letIn = readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
  expect(letIn.filter((line) => /secrets|\.env|data|node_modules|\.git/.test(line))).toEqual([])
  expect(readFileSync('.dockerignore', 'utf8')).toMatch(/^config\/relay\.yaml$/m)
  expect(all('ENV').filter((set) => /PASSWORD|KEY|SECRET|TOKEN/i.test(set))).toEqual([])
  expect([all('ARG'), all('ADD')]).toEqual([[], []])
})

test('the health check passes on a 200 only, and fails when nothing answers', async () => {
  const command = commandOf(all('HEALTHCHECK').join())
  let status = 200
  const server = createServer((_request, response) => response.writeHead(status).end())
  const url = `http://127.0.0.1:${await listen(server)}/healthz`
  const check = async () =>
    (await once(tieToTest(spawn(process.execPath, command.slice(1), { ...ownGroup, env: { HEALTH_URL: url } })), 'exit'))[0] as unknown
  expect(command[0]).toBe('node')
  expect(await check()).toBe(0)
  status = 503
  expect(await check()).toBe(1)
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  expect(await check()).toBe(1)
  const { port } = loadConfig('config/demo.yaml', {}).listen.public
  expect(all('ENV')).toContain(`HEALTH_URL=http://127.0.0.1:${port}/healthz`)
})

const compose = z
  .object({
    services: z.object({
      relay: z.object({
        restart: z.literal('always'),
        init: z.literal(true),
        read_only: z.literal(true),
        stop_grace_period: z.string().regex(/^\d+s$/),
        mem_limit: z.string().regex(/^\d+[mg]$/),
        logging: z.object({ options: z.object({ 'max-size': z.string(), 'max-file': z.string() }) }),
        volumes: z.array(z.string()),
        secrets: z.array(z.string()),
      }),
    }),
    volumes: z.record(z.string(), z.unknown()),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
  })
  .parse(parse(readFileSync('compose.yaml', 'utf8')))

test('compose waits longer for a stop than the relay takes; its secrets and volumes exist', () => {
  const { relay } = compose.services
  const { shutdownTimeoutMs } = loadConfig(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
  expect(Number.parseInt(relay.stop_grace_period, 10) * 1000).toBeGreaterThan(shutdownTimeoutMs)
  expect(relay.secrets.toSorted()).toEqual(Object.keys(compose.secrets).toSorted())
  expect(relay.volumes.filter((volume) => !volume.startsWith('.')).map((volume) => volume.split(':')[0])).toEqual(
    Object.keys(compose.volumes),
  )
})

test('the compose files reload without a signal, because Docker takes a signal for a manual stop', () => {
  for (const [path, file, names] of [
    ['compose.yaml', '', ['relay']],
    ['compose.scaled.yaml', '-f compose.scaled.yaml ', ['relay-1', 'relay-2']],
  ] as const) {
    const steps = [...readFileSync(path, 'utf8').matchAll(/^# {3}(.*)$/gm)].map(([, step = '']) => step)
    expect(steps.filter((step) => step.endsWith(' reload'))).toEqual(
      names.map((name) => `docker compose ${file}exec -e RELAY_USERNAME -e RELAY_PASSWORD ${name} parcel-relay reload`),
    )
    expect(steps.filter((step) => step.includes(' kill '))).toEqual([])
  }
})

test('the compose file mounts the config’s folder, so that a reload sees a replaced file', () => {
  const [data, config] = compose.services.relay.volumes.map((volume) => volume.split(':')[1])
  expect(data).toBe(all('VOLUME')[0])
  expect(`${config}/relay.yaml`).toBe(commandOf(all('CMD').join()).at(-1))
})

test('the config and the secrets of the compose file start the relay', async () => {
  const folder = temporaryFolder()
  const given = {
    shared_key: 'a-shared-key-of-sixteen-bytes',
    upstream_password: 'a-password',
    shop_password_hash: HASH,
    admin_password_hash: HASH,
  }
  expect(Object.keys(given)).toEqual(compose.services.relay.secrets)
  for (const [name, secret] of Object.entries(given)) writeFileSync(join(folder, name), `${secret}\n`, { mode: 0o400 })
  const shippedConfig = readFileSync('config/container.yaml', 'utf8')
  const asked = [...shippedConfig.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, name]) => name)
  expect(asked).toEqual(compose.services.relay.secrets)
  const path = join(folder, 'relay.yaml')
  const here = shippedConfig
    .replaceAll('/run/secrets', folder)
    .replace(/port: \d+/g, 'port: 0')
    .replace('data/relay.db', join(folder, 'relay.db'))
  writeFileSync(path, here)
  expect(loadConfig(path, {}).warnings).toEqual([])
  const { folder: cwd, program, env } = shipped()
  const child = tieToTest(
    spawn(process.execPath, [program, 'serve', '--config', path], { ...ownGroup, cwd, env, stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  const ended = once(child, 'exit')
  await readyOf(child)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

test('the compiled relay becomes ready with the command of the image, and ends on SIGTERM', async () => {
  const { folder, env } = shipped()
  const [, ...flags] = commandOf(all('ENTRYPOINT').join())
  const config = writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { log: { level: 'info' } })
  const child = tieToTest(
    spawn(process.execPath, [...flags, 'serve', '--config', config], {
      ...ownGroup,
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const ended = once(child, 'exit')
  await readyOf(child)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

async function readyOf(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error('its log goes nowhere')
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"msg":"relay ready"')) return
  throw new Error('it ended before it was ready')
}
