import Database from 'better-sqlite3'

/**
 * Overrides the store's pragmas. It is loaded into a relay before the relay's own code (`node --import`). Tests use it to prove that they would
 * notice a less durable store, or to make rare events occur in a small trace. `RELAY_TEST_PRAGMAS` is JSON.
 */
const otherwise: Readonly<Record<string, unknown>> = Object(JSON.parse(process.env.RELAY_TEST_PRAGMAS ?? '{}'))
const pragma = Database.prototype.pragma

Database.prototype.pragma = function weaker(this: Database.Database, source: string, options?: Database.PragmaOptions): unknown {
  const [name = ''] = source.split(/\s*=\s*/)
  return pragma.call(this, name in otherwise ? `${name} = ${String(otherwise[name])}` : source, options)
}
