import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { Pool } from 'pg'
import { systemCode } from '../../domain/errors.ts'
import { initial } from './migrations/0001-initial.ts'
import { replicas } from './migrations/0002-replicas.ts'
import { lessons } from './migrations/0003-lessons.ts'
import { parcelVersion } from './migrations/0004-parcel-version.ts'
import { carrier } from './migrations/0005-carrier.ts'
import { tokenTrouble } from './migrations/0006-token-trouble.ts'
  // Older versions would read times of the new forms back as others, and would not find them again at a join.
  { servesFrom: 8, up: writtenTimes.up },
