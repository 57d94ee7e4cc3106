import { Command } from 'commander'

export function serveCommand(): Command {
  return new Command('serve')
    .description('run the relay')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .action(async ({ config }: { readonly config: string }) => {
      const { serve } = await import('./serving.ts')
      await serve(config)
    })
}
