import Database from 'better-sqlite3'

/**
 * Loaded into a relay before its own code (`node --import`): sets pragmas of the store otherwise than the product does. So a harness can
 * show that it would notice a store that is less durable, and see in a small trace what happens rarely. `RELAY_TEST_PRAGMAS` is JSON.
 */
const otherwise: Readonly<Record<string, unknown>> = Object(JSON.parse(process.env.RELAY_TEST_PRAGMAS ?? '{}'))
const pragma = Database.prototype.pragma

Database.prototype.pragma = function weaker(this: Database.Database, source: string, options?: Database.PragmaOptions): unknown {
  const [name = ''] = source.split(/\s*=\s*/)
  return pragma.call(this, name in otherwise ? `${name} = ${String(otherwise[name])}` : source, options)
}
