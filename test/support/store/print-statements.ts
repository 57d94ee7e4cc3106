import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Statement } from '../../../src/core/store/statement.ts'

// Prints every statement that the store has on an engine, as JSON. A process of its own loads no statement of the other engine.

const SOURCES = fileURLToPath(new URL('../../../src', import.meta.url))
const engine = process.argv[2] === 'postgres' ? 'postgres' : 'sqlite'
const STORES = engine === 'postgres' ? /^core\/store\/(?!sqlite\/)|^server\/postgres\/|\.rows\.ts$/ : /^core\/store\/|\.rows\.ts$/

const names = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
for (const name of names) if (name.endsWith('.ts') && !name.endsWith('-thread.ts') && STORES.test(name)) await import(join(SOURCES, name))

const { definedStatements } = await import('../../../src/core/store/statement.ts')
const textOf = await compiler()
process.stdout.write(JSON.stringify(definedStatements().map(textOf)))

async function compiler(): Promise<(one: Statement<never, unknown>) => string> {
  if (engine === 'sqlite') {
    const { compileForSqlite } = await import('../../../src/core/store/sqlite/sqlite.ts')
    return (one) => compileForSqlite(one).sql
  }
  const { compileForPostgres } = await import('../../../src/server/postgres/postgres-dialect.ts')
  return (one) => compileForPostgres(one).text
}
