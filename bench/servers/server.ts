import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A measured server in its own process. */
export interface Server {
  readonly pid: number
  /** Port for the load. */
  readonly port: number
  /** Stops it gracefully. */
  stop(): Promise<void>
  kill(): Promise<void>
}

export interface Spawned extends Omit<Server, 'port'> {
  /** The JSON it printed when it was ready. */
  readonly said: Readonly<Record<string, unknown>>
}

/** Starts a Node process and waits until it prints a line of JSON that satisfies `isReady`. */
export async function spawnNode(
  args: readonly string[],
  isReady: (said: Readonly<Record<string, unknown>>) => boolean,
  env: Readonly<Record<string, string>> = {},
): Promise<Spawned> {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production', ...env },
  })
  const ended = once(child, 'exit')
  const said = await Promise.race([
    firstLine(child, isReady),
    ended.then(() => Promise.reject(new Error(`it ended before it was ready: node ${args.join(' ')}`))),
  ])
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await ended
  }
  return { pid: child.pid ?? 0, said, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}

/** Starts a server of this folder and waits until it announces its port. */
export async function startFloor(file: string, ...args: readonly string[]): Promise<Server> {
  const { said, ...server } = await spawnNode([fileURLToPath(new URL(file, import.meta.url)), ...args], ({ port }) => port !== undefined)
  return { ...server, port: Number(said.port) }
}

function firstLine(
  child: ChildProcess,
  isReady: (said: Readonly<Record<string, unknown>>) => boolean,
): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = child
  if (stdout === null) throw new Error('the output of the process is not piped')
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const said: unknown = JSON.parse(line)
      if (typeof said !== 'object' || said === null) return
      const fields: Readonly<Record<string, unknown>> = { ...said }
      if (isReady(fields)) resolve(fields)
      else if (fields.level === 'warn' || fields.level === 'error') process.stderr.write(`${line}\n`)
    })
  })
}
