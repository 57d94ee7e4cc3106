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

/** A checkout of the project as a reader has it, with its dependencies installed, and a folder for doubles of commands that comes first on its PATH. */
export function checkoutOfTest() {
  const folder = join(temporaryFolder(), 'parcel-relay')
  const bin = join(dirname(folder), 'bin')
  for (const path of [folder, bin, join(folder, 'data')]) mkdirSync(path)
  for (const name of FILES)
    cpSync(name, join(folder, name), { recursive: true, filter: (path) => basename(path) !== 'relay.yaml' || path.includes('systemd') })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  /** Puts a command before that of the system. */
  const double = (name: string, script: string) => writeFileSync(join(bin, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  // The dependencies are there already. Everything else is for npm itself.
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
  double('npm', `[ "$1" = ci ] || exec ${npm} "$@"`)
  return { folder, root: dirname(folder), double, path: `${bin}:${process.env.PATH ?? ''}` }
}
