import { expect, test } from 'vitest'
import { parseSettings } from '../../bench/settings.ts'
import { years } from '../../bench/suites/years.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('the benchmark suite "years" measures every figure on a small store', async () => {
  const settings = { ...parseSettings(['--quick', '--events', '2800', '--rounds', '1']), keep: `${temporaryFolder()}/kept.db` }
  const said: string[] = []
  const { figures } = await years({
    settings,
    relayEntry: shipped().program,
    folder: temporaryFolder(),
    say: (text) => said.push(text),
  })
  expect(figures.map(({ name }) => name)).toEqual([
    expect.stringContaining('push p50 during a backup / without, 2800 events'),
    expect.stringContaining('push p50 during a rebuild / without'),
    expect.stringContaining('push p50 during retention / without'),
    expect.stringContaining('rebuild of 2800 events'),
    expect.stringContaining('longest wait beside retention'),
    expect.stringContaining('backup and restore drill, 2800 events'),
    expect.stringContaining('file size after'),
  ])
  for (const { name, value, must } of figures) {
    expect([name, Number.isFinite(value)], said.join('\n')).toEqual([name, true])
    expect(must).toBeGreaterThan(0)
  }
})
