import { expect, test } from 'vitest'
import { bind, compileForSqlite } from '../../../../src/core/store/sqlite/sqlite.ts'
import { statement } from '../../../../src/core/store/statement.ts'

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

test('the planner sees no values, so SQLite does not plan a statement again at every run', () => {
  const compiled = compileForSqlite(nextOf)
  expect(compiled.sql).toBe(
    'select "id" from "delivery" where "endpoint_id" = +? and "state" = 1 and "reason" = +? order by "sequence" limit +?',
  )
  expect(bind(compiled, { endpointId: 7, limit: 3 })).toEqual([7, 'unreachable', 3])
})

test('a list is one parameter, however long it is', () => {
  const some = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
    db.selectFrom('parcel').select('id').where('id', 'in', oneOf(p.ids)),
  )
  const compiled = compileForSqlite(some)
  expect(compiled.sql).toBe('select "id" from "parcel" where "id" in (select value from json_each(+?))')
  expect(bind(compiled, { ids: [3, 5, 8] })).toEqual(['[3,5,8]'])
})

test('a question mark within a text is not a parameter', () => {
  const odd = statement<{ id: number }>()((db, p) => db.selectFrom('delivery').select(['id as what?']).where('id', '=', p.id))
  expect(() => compileForSqlite(odd)).toThrow(/a question mark in the SQL is not a placeholder/)
})
