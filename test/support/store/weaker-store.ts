import Database from 'better-sqlite3'

/**
 * Loaded into a relay before its own code (`node --import`). Overrides the store's pragmas, so that a harness can prove that it would notice a
 * less durable store, and can see rare events in a small trace. `RELAY_TEST_PRAGMAS` is JSON.
 */
const otherwise: Readonly<Record<string, unknown>> = Object(JSON.parse(process.env.RELAY_TEST_PRAGMAS ?? '{}'))
const pragma = Database.prototype.pragma

Database.prototype.pragma = function weaker(this: Database.Database, source: string, options?: Database.PragmaOptions): unknown {
  const [name = ''] = source.split(/\s*=\s*/)
  return pragma.call(this, name in otherwise ? `${name} = ${String(otherwise[name])}` : source, options)
}
