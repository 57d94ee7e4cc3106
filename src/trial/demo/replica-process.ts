import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseDocument } from 'yaml'

export interface DemoReplica {
  readonly name: string
  readonly pid: number
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves with the reason when the relay ends. */
  readonly died: Promise<unknown>
  isRunning(): boolean
  stop(): Promise<void>
}

/** The relays of the demo: one, or several that share a store. */
export interface DemoRelays {
  readonly replicas: readonly DemoReplica[]
  /** The address to which the carrier sends its pushes. */
  readonly webhookUrl: string
  /** The path of the SQLite file, or the URL of the PostgreSQL database. */
  readonly store: string
  stop(): Promise<void>
}

export interface ReplicaOptions {
  readonly name: string
  /** The folder in which the replica's config file is written. */
  readonly folder: string
  /** Settings that replace those of `configFile`, each with its path in the file. */
  readonly settings: readonly (readonly [path: readonly (string | number)[], value: unknown])[]
  /** The replica gets a copy of this config file, changed by `settings`. */
  readonly configFile: string
  readonly onTrouble: (message: string) => void
}

/** A relay that takes longer to stop is killed. */
const STOP_MAX_MS = 15_000

/** Starts `parcel-relay serve` in a separate process. Resolves when the relay is ready. */
export async function startReplica({ name, folder, settings, configFile, onTrouble }: ReplicaOptions): Promise<DemoReplica> {
  const path = join(folder, `${name.replace(' ', '-')}.yaml`)
  const document = parseDocument(readFileSync(configFile, 'utf8'))
  for (const [key, value] of settings) document.setIn(key, value)
  writeFileSync(path, document.toString(), { mode: 0o600 })

  const [program = ''] = process.argv.slice(1)
  const child = spawn(process.execPath, [...process.execArgv, program, 'serve', '--config', path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const died = once(child, 'exit')
  endWithThisProcess(child)
  const ready = await Promise.race([readLog(child, (message) => onTrouble(`${name}: ${message}`)), died.then(() => null)])
  if (ready === null) throw new Error(`${name} did not start`)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    name,
    pid: child.pid ?? 0,
    ...ready,
    died,
    isRunning,
    async stop() {
      if (isRunning()) child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
      await died
      clearTimeout(late)
    },
  }
}

/** Makes the relay end with this process, even if this process is killed. A shell waits until its standard input closes, then kills the relay. */
function endWithThisProcess(child: ChildProcess): void {
  const leash = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -KILL "$0"', String(child.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  leash.unref()
  child.once('exit', () => leash.kill('SIGKILL'))
}

type Addresses = Pick<DemoReplica, 'publicUrl' | 'internalUrl'>

/** Reads the relay's log. Resolves with the addresses from the line "relay ready". Passes warnings and errors to `onTrouble`. */
function readLog({ stdout }: ChildProcess, onTrouble: (message: string) => void): Promise<Addresses> {
  return new Promise((resolve) => {
    if (stdout === null) return
    createInterface({ input: stdout }).on('line', (text) => {
      const line: unknown = JSON.parse(text)
      const textOf = (name: string) => (typeof line === 'object' && line !== null ? String(Reflect.get(line, name)) : '')
      if (textOf('msg') === 'relay ready') resolve({ publicUrl: textOf('public'), internalUrl: textOf('internal') })
      else if (['warn', 'error'].includes(textOf('level'))) onTrouble(textOf('msg'))
    })
  })
}
