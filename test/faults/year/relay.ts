import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { ADMIN, logIn, type RelayProcess, type Sections, spawnRelay, writeConfig } from '../../support/relay/relay.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import type { SimulatedTime } from '../../support/simulation/simulated-time.ts'

/** The program runs from its sources, because the simulation changes some source files when they are loaded. */
const PROGRAM = join(import.meta.dirname, '../../../src/main.ts')

export interface Answered {
  readonly status: number
  readonly text: string
  readonly body: Readonly<Record<string, unknown>>
}

export interface RelayOfYear {
  start(): Promise<void>
  stop(): Promise<void>
  kill(): Promise<void>
  /** Sends SIGHUP. Rejects if the relay refuses the new settings. */
  reload(): Promise<void>
  call(method: string, path: string, body?: unknown): Promise<Answered>
  metrics(): Promise<string>
  /** Runs a command of the operator, and returns its output. */
  command(...args: readonly string[]): Promise<string>
  publicUrl(): string
  /** Error lines of the log, each with its count. */
  readonly errors: ReadonlyMap<string, number>
}

export interface RelayOfYearOptions {
  readonly folder: string
  readonly carrierUrl: string
  readonly time: SimulatedTime
  readonly sections: () => Sections
  readonly env: () => NodeJS.ProcessEnv
}

const HANGS_MS = 60_000

export function createRelayOfYear({ folder, carrierUrl, time, sections, env }: RelayOfYearOptions): RelayOfYear {
  const errors = new Map<string, number>()
  let running: RelayProcess | null = null
  let token = ''
  let onLine: (line: Readonly<Record<string, unknown>>) => void = () => undefined
  const environment = () => ({ ...time.env, ...env() })
  const config = () => writeConfig(folder, carrierUrl, sections())
  const current = () => {
    if (running === null) throw new Error('the relay does not run')
    return running
  }

  function read(text: string): void {
    const line = Object(JSON.parse(text))
    onLine(line)
    if (line.level !== 'error') return
    const what = `${String(line.msg)} ${JSON.stringify(line.err ?? line.problems ?? '').slice(0, 300)}`
    errors.set(what, (errors.get(what) ?? 0) + 1)
  }

  async function request(method: string, path: string, body: unknown, isRepeated = false): Promise<Answered> {
    const { internalUrl } = current()
    if (token === '') token = await logIn(internalUrl, ADMIN)
    const response = await fetch(`${internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(HANGS_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = await response.text()
    if (response.status === 401 && !isRepeated) {
      token = ''
      return await request(method, path, body, true)
    }
    return { status: response.status, text: answer, body: answer.startsWith('{') ? Object(JSON.parse(answer)) : {} }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const { process: child, ended } = current()
    running = null
    child.kill(signal)
    const { code } = await ended
    if (signal === 'SIGTERM' && code !== 0) throw new Error(`the relay ended with ${code} when it was stopped`)
  }

  return {
    errors,
    async start() {
      running = await spawnRelay(config(), environment(), PROGRAM)
      if (running.process.stdout !== null) createInterface({ input: running.process.stdout }).on('line', read)
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async reload() {
      const { process: child } = current()
      config()
      await new Promise<void>((resolve, reject) => {
        onLine = ({ msg, problems }) => {
          if (String(msg).startsWith('config reloaded')) resolve()
          if (String(msg).startsWith('the reloaded config has problems')) reject(new Error(JSON.stringify(problems)))
        }
        child.kill('SIGHUP')
      })
      onLine = () => undefined
    },
    call: (method, path, body) => request(method, path, body),
    metrics: async () => await (await fetch(`${current().internalUrl}/metrics`)).text(),
    async command(name, ...args) {
      const { args: program, env: base } = shipped(PROGRAM)
      const child = tieToTest(
        spawn(process.execPath, [...program, String(name), '--config', config(), ...args], {
          ...ownGroup,
          env: { ...base, ...environment() },
        }),
      )
      const code = new Promise<number | null>((resolve) => child.on('close', resolve))
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
      if ((await code) !== 0) throw new Error(`${String(name)} failed: ${err}`)
      return out
    },
    publicUrl: () => current().publicUrl,
  }
}
