import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startPostgres } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import { withClient } from '../../support/store/postgres-client.ts'

const STARTS_ONE = `import('./src/trial/demo/postgres/throwaway-server.ts').then(async ({ startPostgres }) => {
  const { folder, url } = await startPostgres()
  process.stdout.write(folder + ' ' + url())
})`

test('a test’s server ends with the process that started it, even after a kill', async () => {
  const child = tieToTest(spawn(process.execPath, ['-e', STARTS_ONE], { ...ownGroup, stdio: ['ignore', 'pipe', 'inherit'] }))
  const said = await new Promise<string>((resolve) => child.stdout.setEncoding('utf8').once('data', resolve))
  const [folder = '', url = ''] = said.split(' ')
  expect(existsSync(folder)).toBe(true)
  child.kill('SIGKILL')
  await expect.poll(() => existsSync(folder)).toBe(false)
  // The folder may disappear slightly before the server ends.
  const refusal = () => withClient(url, (client) => client.query('select 1')).then(String, String)
  await expect.poll(refusal).toContain('ECONNREFUSED')
})

test('committed rows are there after a power cut and a restart', async () => {
  await using server = await startPostgres()
  await withClient(server.url(), (client) => client.query('create table kept as select 1 as one'))
  await server.stop('immediate')
  await server.start()
  expect(await withClient(server.url(), async (client) => (await client.query('select one from kept')).rows)).toEqual([{ one: 1 }])
})
