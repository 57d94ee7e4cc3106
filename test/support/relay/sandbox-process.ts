import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { SandboxParcel, SandboxStats, Tally } from '../../../src/trial/sandbox/control-api.ts'
import { shipped } from '../runner/shipped.ts'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'
import { CARRIER_LOGIN, SHARED_KEY } from './relay.ts'

export interface World {
  readonly tally: Tally
  readonly parcels: readonly SandboxParcel[]
}

/** The carrier emulator in its own process, on a free port. */
export interface SandboxProcess extends AsyncDisposable {
  readonly url: string
  /** Sends a command to its control API, by the last part of the path. */
  order(name: string, body?: object): Promise<void>
  world(): Promise<World>
  stats(): Promise<SandboxStats>
}

/** Starts `parcel-relay sandbox`, paused, with the login and key that test relays use. */
export async function spawnSandbox(flags: readonly string[]): Promise<SandboxProcess> {
  const { args, env } = shipped()
  const child = tieToTest(
    spawn(process.execPath, [...args, 'sandbox', '--port', '0', '--paused', '--json', ...flags], {
      ...ownGroup,
      env: {
        ...env,
        SANDBOX_SHARED_KEY: SHARED_KEY,
        SANDBOX_USERNAME: CARRIER_LOGIN.username,
        SANDBOX_PASSWORD: CARRIER_LOGIN.password,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const ended = once(child, 'exit')
  const line = once(createInterface({ input: child.stdout }), 'line').then(([first]) => String(first))
  const said = await Promise.race([line, ended.then(([code]) => Promise.reject(new Error(`the sandbox ended with ${code}`)))])
  const address: unknown = JSON.parse(said)
  if (typeof address !== 'object' || address === null || !('url' in address)) throw new Error(`no address: ${said}`)
  const url = String(address.url)

  const call = async (name: string, init: RequestInit): Promise<unknown> => {
    const answer = await fetch(`${url}/sandbox/${name}`, init)
    if (!answer.ok) throw new Error(`/sandbox/${name}: ${answer.status} ${await answer.text()}`)
    return await answer.json()
  }
  return {
    url,
    order: async (name, body = {}) => void (await call(name, { method: 'POST', body: JSON.stringify(body) })),
    world: async () => {
      const world = await call('world', {})
      return isWorld(world) ? world : Promise.reject(new Error('no world'))
    },
    stats: async () => {
      const stats = await call('stats', {})
      return isStats(stats) ? stats : Promise.reject(new Error('no stats'))
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

// The peer is this repository's own emulator, so this checks only the kind of the answer.
function isWorld(value: unknown): value is World {
  return typeof value === 'object' && value !== null && 'tally' in value && 'parcels' in value && Array.isArray(value.parcels)
}

function isStats(value: unknown): value is SandboxStats {
  return typeof value === 'object' && value !== null && 'calls' in value && 'pushes' in value && 'tally' in value
}
