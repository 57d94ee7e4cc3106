import { expect, test } from 'vitest'
import { plain } from '../../../src/console/cli/terminal.ts'
import { overviewPage } from '../../../src/console/portal/overview/overview.page.ts'
import { decodeConcerns } from '../../../src/console/problems/concern.ts'
import { createConcernTable } from '../../../src/console/problems/concern-kinds.ts'
import { WELL } from '../../support/portal/situation.ts'
import { visitAt, wordEvent } from '../../support/portal/visit.ts'

const HOSTILE = [
  '\u001b[31mred\u001b[0m\u001b]0;title\u0007',
  '<script>alert(1)</script><img src=x onerror=alert(1)>',
  'safe\u202egnp.exe\u2066',
  'one\ntwo\r\nthree\u0000',
  `long ${'x'.repeat(100_000)}`,
]

const told = (text: string) => ({
  kind: 'reload_failed',
  endpoint: null,
  replica: null,
  title: text,
  sinceMs: 1,
  evidence: [text, ...Array<string>(8).fill(text)],
  todo: [text],
})

const NO_TRAFFIC = { fromMs: [], pushes: [], missed: [], polls: [], attempts: [] }
const traffic = { hours: NO_TRAFFIC, days: NO_TRAFFIC, calls: {}, disk: [] }

test.each(HOSTILE.map((text) => [text.slice(0, 20), text] as const))(
  'hostile text that another replica tells stays text, and is bounded: %j',
  (_, text) => {
    const concerns = decodeConcerns(JSON.stringify(Array.from({ length: 30 }, () => told(text))))
    expect([concerns.length, concerns[0]?.evidence.length]).toEqual([20, 5])
    expect(JSON.stringify(concerns).length).toBeLessThan(60_000)
    const page = overviewPage(
      visitAt(''),
      { ...WELL, happened: [], traffic, concerns: createConcernTable([]).describe(concerns.slice(0, 1)) },
      wordEvent,
    )
    expect(page).not.toMatch(/<script>alert|<img src=x|(?![\n\r\t])[\p{Cc}\u202e\u2066]/u)
    for (const { title } of concerns) expect(plain(title)).not.toMatch(/[\p{Cc}\u202e\u2066]/u)
  },
)

test.each(['not JSON', '{}', '[1,null,"x",{}]', '[{"kind":"unknown"}]', null])('what is no concern is left out: %j', (json) => {
  expect(decodeConcerns(json)).toEqual([])
})
