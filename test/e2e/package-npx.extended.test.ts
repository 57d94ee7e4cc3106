import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync('package.json', 'utf8')))

/** Packs the build that all tests share, and installs it into an empty folder, as a user of the package does. */
function installInEmptyFolder(): string {
  const root = temporaryFolder()
  const [source, empty] = [join(root, 'source'), join(root, 'empty')]
  for (const folder of [source, empty]) mkdirSync(folder)
  for (const name of ['package.json', 'README.md', 'CHANGELOG.md', 'config', 'docs']) cpSync(name, join(source, name), { recursive: true })
  cpSync(join(shipped().folder, 'dist'), join(source, 'dist'), { recursive: true })
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', root], {
    cwd: source,
    encoding: 'utf8',
  })
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', join(root, packed.trim())]
  execFileSync('npm', install, { cwd: empty, stdio: 'ignore' })
  return empty
}

test('npx runs the version, the help and the demo of the package in an empty folder', async () => {
  const cwd = installInEmptyFolder()
  const npx = async (...words: readonly string[]) =>
    (await promisify(execFile)('npx', ['--no-install', 'parcel-relay', ...words], { cwd })).stdout
  expect(await npx('--version')).toBe(`${version}\n`)
  expect(await npx('--help')).toMatch(/^Usage: parcel-relay /)
  expect(await npx('demo', '--until-complete', '--parcels', '3', '--seconds', '1', '--free-ports')).toContain(
    'All 3 histories are complete',
  )
})
