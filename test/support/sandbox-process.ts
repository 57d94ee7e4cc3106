import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { SandboxParcel } from '../../src/sandbox/handle.ts'
import type { SandboxStats } from '../../src/sandbox/stats.ts'
import type { Tally } from '../../src/sandbox/tally.ts'
import { CARRIER_LOGIN, SHARED_KEY } from './relay.ts'
import { tieToTest } from './tied-process.ts'

export interface World {
  readonly tally: Tally
  readonly parcels: readonly SandboxParcel[]
}

/** The carrier emulator as a process of its own, on a free port. */
export interface SandboxProcess extends AsyncDisposable {
  readonly url: string
  /** An order to its control plane, by the last part of the path. */
  order(name: string, body?: object): Promise<void>
  world(): Promise<World>
  stats(): Promise<SandboxStats>
}

/** `parcel-relay sandbox`, standing still until it is told to go on, with the login and the key that test relays have. */
export async function spawnSandbox(flags: readonly string[]): Promise<SandboxProcess> {
  const child = spawn(process.execPath, ['src/main.ts', 'sandbox', '--port', '0', '--paused', '--json', ...flags], {
    env: {
      ...process.env,
      SANDBOX_SHARED_KEY: SHARED_KEY,
      SANDBOX_USERNAME: CARRIER_LOGIN.username,
      SANDBOX_PASSWORD: CARRIER_LOGIN.password,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  tieToTest(child)
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

// JSON carries no types. What is on the other end is the emulator of this very repository, so only the kind of the answer is checked.
function isWorld(value: unknown): value is World {
  return typeof value === 'object' && value !== null && 'tally' in value && 'parcels' in value && Array.isArray(value.parcels)
}

function isStats(value: unknown): value is SandboxStats {
  return typeof value === 'object' && value !== null && 'calls' in value && 'pushes' in value && 'tally' in value
}
