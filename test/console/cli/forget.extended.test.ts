import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf } from '../../support/relay/run-command.ts'

async function relayWith(...ids: readonly string[]) {
  const relay = await relayOfTest()
  for (const id of ids) expect((await push(relay.publicUrl, pushBody({ trackingIds: [id] }))).status).toBe(200)
  return { relay, run: commandsOf(relay) }
}

const WHAT = '1 parcel, 1 identifier, 1 sighting, 1 push, 1 text'

test('forget says what would go, then what went with a receipt, and then that it went before', async () => {
  const { run } = await relayWith('75000021')
  const asked = await run('forget', '75000021')
  expect(asked).toMatchObject({ code: 0, stdout: `75000021: would erase ${WHAT}\nNothing was erased. Say --yes to erase it.\n` })
  const erased = await run('forget', '75000021', '--yes')
  expect(erased.code).toBe(0)
  const [what, receipt, marks] = erased.stdout.split('\n').filter((line) => !line.startsWith('  storage: '))
  expect(what).toBe(`75000021: erased ${WHAT}`)
  const order = 'ordered at \\S+Z by admin, relay \\S+'
  expect(receipt).toMatch(new RegExp(`^  receipt: erased at \\S+Z, parcel \\S+; ${order}$`))
  expect(marks).toMatch(/^ {2}marks: \S+$/)
  const again = await run('forget', '75000021', '--yes')
  expect(again.code).toBe(0)
  expect(again.stdout).toMatch(new RegExp(`^75000021: erased nothing\n(?:.*\n)*  receipt: was erased before, at \\S+Z.*; ${order}\n`))
})

test('forget of a parcel that nobody knows fails, and erases nothing', async () => {
  const { run } = await relayWith()
  const { code, stdout, stderr } = await run('forget', '75000022', '--yes')
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain('75000022')
})

test('forget --file adds up what went, and names bad and unknown lines as the file numbers them', async () => {
  const { relay, run } = await relayWith('75000023', '75000024')
  const file = join(relay.folder, 'erase.csv')
  writeFileSync(file, 'identifier\n75000023\nno\n75000024\n75000025\n')
  const { code, stdout, stderr } = await run('forget', '--file', file, '--yes')
  expect(code).toBe(1)
  expect(stdout).toMatch(/^2 parcels: erased 2 parcels, 2 identifiers, 2 sightings, 2 pushes, 1 text\n/)
  expect(stdout).toContain('--json prints a receipt for each identifier\n')
  expect(stderr).toContain(`${file}:3 is not an identifier`)
  expect(stderr).toContain(`${file}:5 `)
})
