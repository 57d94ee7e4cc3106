import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Makes of a folder an installed package: what `npm run build` makes, beside a manifest and the dependencies. Returns the path of its program. */
export function compileInto(folder: string): string {
  const dist = join(folder, 'dist')
  const built = spawnSync('node_modules/.bin/rolldown', ['--config', '--dir', dist], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`it does not compile: ${built.stdout}${built.stderr}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return join(dist, 'main.js')
}
