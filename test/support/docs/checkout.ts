import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { temporaryFolder } from '../runner/temporary.ts'

const FILES = [
  'src',
  'config',
  'docs',
  'package.json',
  'package-lock.json',
  'rolldown.config.ts',
  'tsconfig.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
]

/** Makes a checkout of the project like a reader's, with its dependencies installed. A folder that comes first on the PATH replaces commands. */
export function checkoutOfTest() {
  const folder = join(temporaryFolder(), 'parcel-relay')
  const bin = join(dirname(folder), 'bin')
  for (const path of [folder, bin, join(folder, 'data')]) mkdirSync(path)
  for (const name of FILES)
    cpSync(name, join(folder, name), { recursive: true, filter: (path) => basename(path) !== 'relay.yaml' || path.includes('systemd') })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  /** Replaces a command of the system by this script. */
  const double = (name: string, script: string) => writeFileSync(join(bin, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  // The dependencies are already installed, so `npm ci` does nothing. Every other call runs the real npm.
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
  double('npm', `[ "$1" = ci ] || exec ${npm} "$@"`)
  return { folder, root: dirname(folder), double, path: `${bin}:${process.env.PATH ?? ''}` }
}
