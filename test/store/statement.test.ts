import { expect, test } from 'vitest'
import { bind, statement } from '../../src/store/statement.ts'

const nextOf = statement<{ endpointId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('id')
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', 1)
    .where('reason', '=', 'unreachable')
    .orderBy('sequence')
    .limit(p.limit),
)

test('a statement gives the planner no value to look at: it would be planned anew at every run', () => {
  expect(nextOf.sql).toBe(
    'select "id" from "delivery" where "endpoint_id" = +? and "state" = 1 and "reason" = +? order by "sequence" limit +?',
  )
  expect(bind(nextOf, { endpointId: 7, limit: 3 })).toEqual([7, 'unreachable', 3])
})

test('a text with a question mark in it is no place', () => {
  const build = () => statement<{ id: number }>()((db, p) => db.selectFrom('delivery').select(['id as what?']).where('id', '=', p.id))
  expect(build).toThrow(/not every question mark is a place/)
})
