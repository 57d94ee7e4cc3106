import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sendList } from '../../../../src/console/cli/asking/lists.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { tablesThatHold } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

/** An answer has at most so many receipts. */
const BOUND = 5000
const eventTime = new Date(NOON).toISOString()

describe.each(engines)('a list of identifiers at the bound of receipts, on $name', (engine) => {
  test('is erased whole, and one more than the bound only lacks its receipt', async () => {
    const { path, record, forgetList } = await openErasures(engine)
    const names = Array.from({ length: BOUND + 1 }, (_, nth) => `GONE${100_000 + nth}`)
    for (let at = 0; at < names.length; at += 500)
      await record(...names.slice(at, at + 500).map((name) => incomingPush(pushBody({ trackingIds: [name], eventTime }), NOON)))
    const first = await forgetList(names.slice(0, BOUND))
    expect([first.erased, first.erasedBefore, first.receipts.length]).toEqual([BOUND, 0, BOUND])
    expect(first.receipts.map(({ identifier }) => identifier)).toEqual(names.slice(0, BOUND))
    const second = await forgetList(names)
    expect([second.erased, second.erasedBefore, second.unknown, second.receipts.length]).toEqual([1, BOUND, 0, BOUND])
    // What was erased before is named with the mark of its first receipt.
    expect(second.receipts.map(({ marks }) => marks)).toEqual(first.receipts.map(({ marks }) => marks))
    expect(await storedNumber(path, 'select count(*) from tombstone')).toBe(BOUND + 1)
    expect(await tablesThatHold(path, ['GONE1'])).toEqual([])
  })
})

test('the command sends a list in parts that are answered with a receipt for each identifier', async () => {
  const file = join(temporaryFolder(), 'list.csv')
  writeFileSync(file, ['trackingNumber', ...Array.from({ length: 2 * BOUND + 1 }, (_, nth) => `GONE${100_000 + nth}`)].join('\n'))
  const identifiers: number[] = []
  const screen = { isTTY: false, write: () => true }
  await sendList(
    { file, column: undefined, step: 'erasing' },
    async ({ text }) => void identifiers.push(text.split('\n').length - 1),
    screen,
  )
  expect(identifiers.reduce((sum, count) => sum + count, 0)).toBe(2 * BOUND + 1)
  expect(Math.max(...identifiers)).toBeLessThanOrEqual(BOUND)
})
