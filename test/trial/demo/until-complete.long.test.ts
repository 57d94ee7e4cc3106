import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { addressOf, startDemo } from './demo-process.ts'

test('the shipped demo finds a free port, says so, and with --until-complete ends with 0', async () => {
  const occupant = createServer().listen(8090, '127.0.0.1')
  // The test also works if another process already uses the port.
  occupant.on('error', () => undefined)
  onTestFinished(() => void occupant.close())
  const demo = startDemo(['--parcels', '3', '--seconds', '1', '--until-complete'])
  expect(await demo.ended).toEqual([0, null])
  expect(demo.lines.find((line) => line.includes('already in use'))).toContain('8090')
  expect(addressOf(demo.lines, 'sandbox carrier')).not.toMatch(/:8090$/)
  expect(demo.lines.join('\n')).toMatch(/histories complete 3\/3 .*\n+All 3 histories are complete/)
  expect(demo.lines.filter((line) => line.includes('until Ctrl-C') || line === 'Ctrl-C ends the demo.')).toEqual([])
  expect(demo.isAlone()).toBe(true)
})

test('an invalid flag is reported and ends the demo with 2', async () => {
  const demo = startDemo(['--parcels', '0'])
  expect(await demo.ended).toEqual([2, null])
  expect(demo.lines.join('\n')).toContain('from 1 to 500')
})
