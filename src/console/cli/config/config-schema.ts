import { Command } from 'commander'
import { configJsonSchema } from '../../../core/config/config.ts'

/** `config schema`: generates `config/relay.schema.json`. */
export function configSchemaCommand(): Command {
  return new Command('schema').description('print the JSON Schema of the config file, for editors').action(() => {
    process.stdout.write(presentSchema())
  })
}

/** Returns the exact content of `config/relay.schema.json`. */
export function presentSchema(): string {
  const expanded = JSON.stringify(configJsonSchema(), null, 2)
  // Write lists of plain values on one line, as the formatter of this repository does.
  const compact = expanded.replace(/\[\n\s+([^[\]{}]+?)\n\s+\]/g, (_, items: string) => `[${items.replace(/\n\s+/g, ' ')}]`)
  return `${compact}\n`
}
