import { Command } from 'commander'
import { configJsonSchema } from '../config/config.ts'

/** `config schema`: what `config/relay.schema.json` is made with. */
export function configSchemaCommand(): Command {
  return new Command('schema').description('print the JSON Schema of the config file, for editors').action(() => {
    process.stdout.write(presentSchema())
  })
}

/** The exact content of `config/relay.schema.json`. */
export function presentSchema(): string {
  const expanded = JSON.stringify(configJsonSchema(), null, 2)
  // Lists of plain values on one line, as the formatter has them.
  const compact = expanded.replace(/\[\n\s+([^[\]{}]+?)\n\s+\]/g, (_, items: string) => `[${items.replace(/\n\s+/g, ' ')}]`)
  return `${compact}\n`
}
