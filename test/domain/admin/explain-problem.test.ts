import { expect, test } from 'vitest'
import { explainProblem } from '../../../src/domain/admin/explain-problem.ts'
import { WELL } from '../../support/portal/situation.ts'

const silent = { ...WELL, pushes: { ...WELL.pushes, health: 'silent' as const, missedSincePush: 7 }, webhook: { path: '/hooks/parcels' } }

test('a silence says what polls miss, and first has the carrier asked for its address', () => {
  const { evidence, todo } = explainProblem({ kind: 'pushes_silent' }, silent, 0)
  expect(evidence).toEqual([
    'The carrier scans as usual: polls found 7 entries since then that no push brought.',
    'Polls find nothing of parcels that no push has named yet: the relay does not know these parcels.',
  ])
  const at = (part: string) => todo.findIndex((step) => step.includes(part))
  expect(todo[at('Ask the carrier to what address')]).toContain('POST https://YOUR-HOST/hooks/parcels, exactly this path')
  expect(at('Ask the carrier to what address')).toBeLessThan(at('DNS'))
  expect(at('list of the parcels that are new since then')).toBe(todo.length - 1)
})
