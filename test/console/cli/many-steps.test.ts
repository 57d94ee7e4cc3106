import { expect, test } from 'vitest'
import { takeSteps } from '../../../src/console/cli/terminal.ts'

const ITEMS = Array.from({ length: 40 }, (_, at) => at)
const take = async (at: number) => (at === 7 ? { failure: '7: no' } : { outcome: at < 10 ? 'unknown' : 'recorded', line: `${at}: done` })

interface How {
  readonly isTTY: boolean
  readonly isForProgram?: boolean
  readonly items?: readonly number[]
  readonly isSummed?: boolean
}

/** Runs the steps, and returns their standard output, their progress and their failures. */
async function run({ isTTY, isForProgram = false, items = ITEMS, isSummed = false }: How) {
  const shown = { out: '', progress: '', failures: [] as string[] }
  const screenOf = (name: 'out' | 'progress') => ({ isTTY, write: (text: string) => (shown[name] += text) })
  const screens = { out: screenOf('out'), progress: screenOf('progress'), fail: (reason: string) => void shown.failures.push(reason) }
  await takeSteps(items, take, { step: 'refreshing', unit: 'parcels', isForProgram, isSummed }, screens)
  return shown
}

test('a terminal shows one bar for many steps, then the counts, and a line for each failure', async () => {
  const { out, progress, failures } = await run({ isTTY: true })
  expect(out).toBe('9 unknown, 30 recorded, 1 failed\n')
  expect(progress).toMatch(/\rrefreshing \[=+\] 100 % 40 of 40 parcels\n$/)
  expect(failures).toEqual(['7: no'])
})

test('with isSummed, a file gets only the counts of many steps, but a program one line a step', async () => {
  const { out, progress, failures } = await run({ isTTY: false, isSummed: true })
  expect([out, progress, failures]).toEqual(['9 unknown, 30 recorded, 1 failed\n', 'refreshing: 40 parcels\n', ['7: no']])
  expect((await run({ isTTY: false, isSummed: true, isForProgram: true })).out.split('\n')).toHaveLength(40)
})

test('a file and a program get one line a step, and so does a terminal if there are few steps', async () => {
  for (const how of [{ isTTY: false }, { isTTY: true, isForProgram: true }, { isTTY: true, items: ITEMS.slice(0, 9) }]) {
    const { out, progress, failures } = await run(how)
    expect(out.split('\n').filter((line) => line.endsWith(': done'))).toHaveLength((how.items ?? ITEMS).length - 1)
    expect([progress, failures]).toEqual(['', ['7: no']])
  }
})
