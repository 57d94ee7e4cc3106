import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sendList } from '../../../src/console/cli/asking/lists.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

/** Sends a CSV file with `count` identifiers. Returns the number of lines in each part, and what the screen shows. */
async function send(count: number, isTTY: boolean) {
  const file = join(temporaryFolder(), 'list.csv')
  writeFileSync(file, `identifier\n${Array.from({ length: count }, (_, at) => `LIST${at}`).join('\n')}\n`)
  const parts: number[] = []
  let shown = ''
  const screen = { isTTY, write: (text: string) => (shown += text) }
  await sendList({ file, column: undefined, step: 'watching' }, async ({ lines }) => void parts.push(lines), screen)
  return { parts, shown }
}

test('a long list shows a bar on a terminal, and one line elsewhere', async () => {
  const { parts, shown } = await send(11_999, true)
  expect(parts).toEqual([5000, 5000, 2000])
  expect(shown).toContain('\rwatching [==========              ]  41 % 5,000 of 12,000 lines')
  expect(shown).toMatch(/100 % 12,000 of 12,000 lines\n$/)
  expect((await send(11_999, false)).shown).toBe('watching: 12,000 lines\n')
})

test('a list that is sent in one part shows no progress', async () => {
  for (const isTTY of [true, false]) expect(await send(4999, isTTY)).toEqual({ parts: [5000], shown: '' })
})
