import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Statement } from '../../../src/core/store/statement.ts'

// Prints every statement that the store has on an engine, as JSON. A process of its own loads no statement of the other engine.

const STORE = fileURLToPath(new URL('../../../src/store', import.meta.url))
const [engine = '', other] = process.argv[2] === 'postgres' ? ['postgres', 'sqlite'] : ['sqlite', 'postgres']

const names = readdirSync(STORE, { recursive: true, encoding: 'utf8' })
for (const name of names)
  if (name.endsWith('.ts') && !name.endsWith('-thread.ts') && !name.startsWith(`${other}/`)) await import(join(STORE, name))

const { definedStatements } = await import('../../../src/core/store/statement.ts')
const textOf = await compiler()
process.stdout.write(JSON.stringify(definedStatements().map(textOf)))

async function compiler(): Promise<(one: Statement<never, unknown>) => string> {
  if (engine === 'sqlite') {
    const { compileForSqlite } = await import('../../../src/core/store/sqlite/dialect.ts')
    return (one) => compileForSqlite(one).sql
  }
  const { compileForPostgres } = await import('../../../src/server/postgres/postgres-dialect.ts')
  return (one) => compileForPostgres(one).text
}
