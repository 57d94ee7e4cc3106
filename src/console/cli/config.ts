import { Command } from 'commander'
import { stringify } from 'yaml'
import { redactedConfig } from '../../core/config/redact.ts'
import { readConfig } from './config/config-file.ts'
import { configReferenceCommand, configSchemaCommand } from './config/config-reference.ts'
import { withExitCodes } from './exit-codes.ts'

/** `config print`, `config schema` and `config reference`. */
export function configCommand(): Command {
  const command = new Command('config')
    .description('show the configuration')
    .addCommand(printCommand())
    .addCommand(configSchemaCommand())
    .addCommand(configReferenceCommand())
  return withExitCodes(command)
}

function printCommand(): Command {
  return new Command('print')
    .description('print every setting in effect, defaults included; secrets are masked')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .option('--json', 'print JSON instead of YAML')
    .action(async (options: { readonly config: string; readonly json?: true }) => {
      const config = await readConfig(options.config)
      if (config === null) return
      for (const warning of config.warnings) process.stderr.write(`warning: ${warning}\n`)
      const settings = redactedConfig(config)
      process.stdout.write(options.json ? `${JSON.stringify(settings, null, 2)}\n` : stringify(settings))
    })
}
