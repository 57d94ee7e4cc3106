import { test } from 'vitest'
import { DIRECTIONS } from '../../support/moving.ts'
import { expectEveryRowMoved } from './every-row-moved.ts'

// The one from SQLite to PostgreSQL is in npm test.
test.each(DIRECTIONS.filter(({ from, to }) => from.name !== 'sqlite' || to.name !== 'postgres'))(
  'a store moves from $name with every row and every number',
  ({ from, to }) => expectEveryRowMoved(from, to),
)
