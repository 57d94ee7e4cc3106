import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listen } from '../support/network/listen.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { onlyLong } from '../support/runner/long-form.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { whileLocked, withoutTable } from '../support/store/stored-rows.ts'
import { eventually, problemOf, startWorld, type World } from './world.ts'

describe('the probes', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
  })
  afterEach(() => world.carrier.setDown(false))
  afterAll(() => world.stop())

  const ready = async () => {
    const answer = await fetch(`${world.internalUrl}/readyz`)
    const body: unknown = await answer.json()
    return { status: answer.status, body, cacheControl: answer.headers.get('cache-control') }
  }

  const versions = [...Object.entries(process.versions), ['relay', packageVersion()]].filter(([, version]) => version?.includes('.'))

  test('X6: /healthz is a 200 on both listeners, and says only that the process lives', async () => {
    for (const url of [world.publicUrl, world.internalUrl]) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await fetch(`${url}/healthz`, { method })
        expect([answer.status, await answer.text()]).toEqual([200, method === 'HEAD' ? '' : '{"status":"ok"}'])
      }
      expect((await fetch(`${url}/healthz`, { method: 'POST' })).status).toBe(405)
    }
  })

  test('X6: no probe names a version or the software, in its body or its headers', async () => {
    for (const url of [`${world.publicUrl}/healthz`, `${world.internalUrl}/healthz`, `${world.internalUrl}/readyz`]) {
      const answer = await fetch(url)
      const told = `${JSON.stringify([...answer.headers])} ${await answer.text()}`
      expect(told).not.toMatch(/node|koa|sqlite|version|x-powered-by|"server"/i)
      // The seconds of an instant may read like a version such as 17.0.
      const untimed = told.replaceAll(/\d\d:[\d:.]+/g, '')
      for (const [, version] of versions) expect(untimed).not.toContain(version)
    }
  })

  test('X6: /readyz reports problems with the carrier in a 200', async () => {
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ready', reasons: [] }, cacheControl: 'no-store' })
    expect((await world.get('/v1/status/50000001/all')).status).toBe(404)
    expect((await ready()).body).toMatchObject({ upstream: { state: 'ok', credentials: 'accepted' } })
    world.carrier.setDown(true)
    expect((await world.get('/v1/status/50000002/all')).status).toBe(503)
    expect(await ready()).toMatchObject({
      status: 200,
      body: { status: 'ready', reasons: [], upstream: { state: 'network', credentials: 'accepted' } },
    })
    expect((await world.push(pushBody({ trackingIds: ['50000003'] }))).status).toBe(200)
    world.carrier.setDown(false)
    expect((await world.get('/v1/status/50000004/all')).status).toBe(404)
    expect((await ready()).body).toMatchObject({ upstream: { state: 'ok' } })
  })

  test('X6: while pushes cannot be stored, /readyz is a 503 with the reason, and reads are 200', async () => {
    const known = '50000005'
    expect((await world.push(pushBody({ trackingIds: [known] }))).status).toBe(200)
    const body = pushBody({ trackingIds: ['50000006'] })
    await whileLocked(world.databasePath, async () => {
      const answer = await world.push(body)
      expect([answer.status, await problemOf(answer)]).toEqual([503, 'storage_unavailable'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await ready()).toMatchObject({
        status: 503,
        body: { status: 'not_ready', reasons: [expect.stringMatching(/^storage_unavailable: .*another program has locked the store/)] },
      })
      expect((await fetch(`${world.publicUrl}/healthz`)).status).toBe(200)
      expect((await world.get(`/v1/status/${known}/latest`)).status).toBe(200)
    })
    expect(await world.inbox.rowsOf(body)).toEqual([])
    await eventually(async () => (await ready()).status === 200)
    expect((await world.push(body)).status).toBe(200)
    expect((await world.inbox.rowOf(body)).state).toBe('recorded')
  })

  test('X6: /readyz is a 503 even if only pushes cannot be stored, and recovers by itself', async () => {
    const body = pushBody({ trackingIds: ['50000007'] })
    await withoutTable(world.databasePath, 'inbox', async () => {
      expect((await world.push(body)).status).toBe(503)
      expect((await world.orderWatch('50000008')).status).toBe(201)
      expect(await ready()).toMatchObject({
        status: 503,
        body: { reasons: [expect.stringMatching(/^storage_unavailable: pushes cannot be stored/)] },
      })
    })
    await eventually(async () => (await ready()).status === 200)
    expect((await world.inbox.rowOf(body)).state).toBe('recorded')
    expect((await world.push(body)).status).toBe(200)
    expect(await world.inbox.rowsOf(body)).toHaveLength(1)
  })

  test('X6: while answers cannot be read, /readyz is a 503 with the reason, and names no path', async () => {
    await withoutTable(world.databasePath, 'parcel', async () => {
      const { status, body } = await ready()
      expect([status, JSON.stringify(body)]).toEqual([503, expect.stringContaining('storage_unavailable: answers cannot be read')])
      expect(JSON.stringify(body)).not.toContain(world.databasePath)
      expect((await fetch(`${world.internalUrl}/healthz`)).status).toBe(200)
    })
    expect((await ready()).status).toBe(200)
  })
})

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : ''
}

describe('the command', () => {
  async function serve(config: string) {
    const { args, env } = shipped()
    const child = tieToTest(
      spawn(process.execPath, [...args, 'serve', '--config', config], { ...ownGroup, stdio: ['ignore', 'pipe', 'pipe'], env }),
    )
    const code = new Promise<number | null>((resolve) => child.once('close', resolve))
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: await code, out, err }
  }

  test('C2: a start with five mistakes in the config exits with 1 and names all of them', async () => {
    const folder = temporaryFolder()
    const config = join(folder, 'relay.yaml')
    const secret = 'canary-0123456789-canary'
    writeFileSync(
      config,
      `listen:
  public: { port: eighty }
store: sqlite:${join(folder, 'relay.db')}
webhook: { sharedKeys: [${secret}] }
upstream: { baseUrl: https://carrier.example, usrname: acme, password: ${secret} }
colour: green
log: { level: loud }
`,
    )
    const { code, out, err } = await serve(config)
    expect([code, out, existsSync(join(folder, 'relay.db'))]).toEqual([1, '', false])
    expect(err).toMatch(/relay\.yaml:2:19 listen\.public\.port: must be /)
    expect(err).toMatch(/relay\.yaml:5:\d+ upstream\.username: /)
    expect(err).toMatch(/relay\.yaml:5:\d+ upstream\.usrname: is not a known key; did you mean username\?/)
    expect(err).toMatch(/relay\.yaml:6:1 colour: is not a known key/)
    expect(err).toMatch(/relay\.yaml:7:15 log\.level: must be one of debug, info, warn, error/)
    expect(err).toMatch(/the config has 5 problems\n$/)
    expect(err).not.toContain(secret)
  })

  onlyLong(test)('C2: a start with a config that does not exist exits with 1 and names the config', async () => {
    const config = join(temporaryFolder(), 'nowhere.yaml')
    const { code, out, err } = await serve(config)
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(config)
  })

  onlyLong(test)('C2: a start on an address in use exits with 1, and names the setting and the address', async () => {
    const taken = createServer()
    const port = await listen(taken)
    const config = writeConfig(temporaryFolder(), 'http://127.0.0.1:1', { listen: { internal: { host: '127.0.0.1', port } } })
    const { code, out, err } = await serve(config)
    taken.close()
    expect([code, out.includes('relay ready')]).toEqual([1, false])
    expect(err).toBe(
      `parcel-relay: listen.internal: port ${port} of 127.0.0.1 is in use by another program: stop that one, or choose another port\n`,
    )
  })
})
