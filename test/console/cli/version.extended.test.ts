import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { fetchDocumented } from '../../support/portal/api-document.ts'
import { ADMIN, ask, logIn } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { shipped } from '../../support/runner/shipped.ts'

const manifest = z
  .object({ version: z.string().regex(/^\d/), engines: z.object({ node: z.string() }) })
  .parse(JSON.parse(readFileSync('package.json', 'utf8')))

test('--version prints the version of the package, both from sources and compiled', () => {
  for (const entry of [['src/main.ts'], shipped().args]) {
    const { stdout, status } = spawnSync(process.execPath, [...entry, '--version'], { encoding: 'utf8', env: shipped().env })
    expect([stdout, status]).toEqual([`${manifest.version}\n`, 0])
  }
})

test('on an older Node a single line names the needed version, before anything is imported', () => {
  const pretend = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })"
  for (const entry of [['src/main.ts'], shipped().args]) {
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...entry, 'serve'],
      { encoding: 'utf8', env: shipped().env },
    )
    const needed = manifest.engines.node.replace('>=', '')
    expect([stdout, stderr, status]).toEqual(['', `parcel-relay needs Node ${needed} or later; this is Node 20.20.2\n`, 1])
  }
})

test('the version is in the metrics and the carrier’s view, but not on the public listener', async () => {
  const relay = await relayOfTest()
  const metrics = await (await fetchDocumented(`${relay.internalUrl}/metrics`)).text()
  expect(metrics).toContain(`relay_build_info{version="${manifest.version}"} 1`)
  const upstream = await ask(relay.internalUrl, await logIn(relay.internalUrl, ADMIN), '/relay/upstream')
  expect(await upstream.json()).toMatchObject({ version: manifest.version })
  expect(await (await fetchDocumented(`${relay.publicUrl}/healthz`)).text()).not.toContain(manifest.version)
})
