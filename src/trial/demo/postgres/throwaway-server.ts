import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresPrograms, SERVER_USER } from './programs.ts'

export interface PostgresOptions {
  /** Settings of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** The parent of the server's folder. Default: the system's folder for temporary files. */
  readonly parent?: string
  /** A data folder from `makeInitialData`. Copying it takes a tenth of the time of making a new one. Absent: a new one is made. */
  readonly initial?: string
}

/** A PostgreSQL server on a free port of 127.0.0.1, for the demo and for tests. Disposing it deletes all its files. */
export interface PostgresServer {
  readonly port: number
  /** The server's folder; its data is in `data`. */
  readonly folder: string
  /** Returns the URL of a database. Default: the database `postgres`. */
  url(database?: string): string
  /** Stops the server. `immediate`: like a crash, so the server recovers at its next start. `fast` (default): a clean shutdown with a checkpoint. */
  stop(how?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const USER = 'relay'
const PASSWORD = 'only-for-this-run'
/** These ports are below the range for outgoing connections, so that no such connection takes the port while the server is stopped. */
const PORTS = { from: 15_000, count: 15_000 }
/**
 * Settings that save memory, because many servers may run at once. The authentication timeout is short, because a database cannot be dropped while a
 * connection is still authenticating.
 */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  shared_buffers: '16MB',
  max_wal_size: '256MB',
  lc_messages: 'C',
  authentication_timeout: '30s',
}

/** If this process ends or is killed, the server stops and its files are deleted. */
export async function startPostgres({ settings = {}, parent = tmpdir(), initial }: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(parent, 'parcel-relay-postgres-'))
  giveToServer(folder)
  const leash = startLeash(folder)
  try {
    const { initdb, postgres } = postgresPrograms(folder)
    if (initial === undefined) initialise(initdb, folder)
    else copyData(initial, folder)
    const port = await freePort()
    const args = Object.entries({ ...SETTINGS, unix_socket_directories: folder, port: String(port), ...settings })
    const start = () => run(postgres, ['-D', join(folder, 'data'), ...args.flatMap(([name, value]) => ['-c', `${name}=${value}`])])
    let server = await start()
    return {
      port,
      folder,
      url: (database = 'postgres') => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`,
      stop: (how = 'fast') => end(server, how === 'fast' ? 'SIGINT' : 'SIGQUIT'),
      async start() {
        server = await start()
      },
      async [Symbol.asyncDispose]() {
        await end(server, 'SIGQUIT')
        await leash.release()
      },
    }
  } catch (error) {
    await leash.release()
    throw error
  }
}

function giveToServer(path: string): void {
  if (SERVER_USER.uid !== undefined) chownSync(path, SERVER_USER.uid, SERVER_USER.gid)
}

/** Makes a data folder for servers to copy. If this process ends or is killed, the folder is deleted. */
export function makeInitialData(parent: string): { readonly path: string; remove(): Promise<void> } {
  const folder = mkdtempSync(join(parent, 'parcel-relay-postgres-'))
  giveToServer(folder)
  const leash = startLeash(folder)
  initialise(postgresPrograms(folder).initdb, folder)
  return { path: join(folder, 'data'), remove: leash.release }
}

function copyData(initial: string, folder: string): void {
  const { status, stderr } = spawnSync('cp', ['-Rp', initial, join(folder, 'data')], { ...SERVER_USER, cwd: '/', encoding: 'utf8' })
  if (status !== 0) throw new Error(`cp failed: ${stderr}`)
}

/** Sorts texts by the rules of a language. That exposes queries that need a certain order but name no collation. */
const LOCALE = ['--locale=C', '--locale-provider=icu', '--icu-locale=en']

function initialise(initdb: string, folder: string): void {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  giveToServer(passwordFile)
  const args = ['-D', join(folder, 'data'), '-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256', '-E', 'UTF8', ...LOCALE]
  const { status, stderr } = spawnSync(initdb, [...args, '--no-sync', '--no-instructions'], { ...SERVER_USER, cwd: '/', encoding: 'utf8' })
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`)
}

/** Resolves when the server accepts connections. The server is detached, so that Ctrl-C does not stop it. The shell of `startLeash` does. */
async function run(postgres: string, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(postgres, args, { ...SERVER_USER, cwd: '/', detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4096)
      if (/ready to accept (?:read-only )?connections/.test(text)) resolve()
    })
    child.once('error', reject)
    child.once('close', () => reject(new Error(`the server did not start: ${said}`)))
  })
  return child
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = new Promise((resolve) => server.once('close', resolve))
  server.kill(signal)
  await ended
}

const LEASH = 'cat >/dev/null; test -f data/postmaster.pid && kill -QUIT "$(head -n 1 data/postmaster.pid)"; cd / && rm -rf "$0"'

/**
 * Starts a shell that waits until its standard input closes, then stops the server and deletes its folder. The input also closes if this
 * process is killed.
 */
function startLeash(folder: string): { release(): Promise<void> } {
  const shell = spawn('/bin/sh', ['-c', LEASH, folder], {
    ...SERVER_USER,
    cwd: folder,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise((resolve) => shell.once('close', resolve))
  return {
    async release() {
      shell.stdin.end()
      await ended
      // The shell runs as the server's user and cannot delete files of other users, so delete what is left.
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count)
    const probe = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => probe.close(resolve))
    if (isFree) return port
  }
}
