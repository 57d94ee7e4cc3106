import { Command } from 'commander'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { VERSION } from '../../package-files.ts'
import { loadSections, WINGS } from '../../wings.ts'
import { addExamples } from './examples.ts'
import { CommandFailure, EXIT, endUnwritten, withExitCodes } from './exit-codes.ts'

/** The first commands of the help, in order, those of wings included. Others follow. */
const ORDER =
  'serve demo sandbox status check parcels history watch refresh forget endpoints deliveries retry replay inbox tail reload watchdogs rebuild move-store'
    .concat(' verify fingerprint restore prune backup export config hash-password operator secrets generate-key completion')
    .split(' ')

/** Each function imports the code of its command. Only the command that runs is imported, so that `serve` does not wait for other libraries. */
const OWN: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => serveCommand(),
  status: async () => (await import('./status.command.ts')).statusCommand(loadSections),
  parcels: async () => (await import('./parcels.command.ts')).parcelsCommand(),
  history: async () => (await import('./history.command.ts')).historyCommand(),
  watch: async () => (await import('./watch.command.ts')).watchCommand(),
  refresh: async () => (await import('./watch.command.ts')).refreshCommand(),
  endpoints: async () => (await import('./endpoints.command.ts')).endpointsCommand(),
  deliveries: async () => (await import('./deliveries.command.ts')).deliveriesCommand(),
  retry: async () => (await import('./deliveries.command.ts')).retryCommand(),
  tail: async () => (await import('./tail.command.ts')).tailCommand(),
  reload: async () => (await import('./reload.command.ts')).reloadCommand(),
  config: async () => (await import('./config.command.ts')).configCommand(loadSections),
  'hash-password': async () => (await import('./new-secrets.ts')).hashPasswordCommand(),
  fingerprint: async () => (await import('./fingerprint.command.ts')).fingerprintCommand(),
  secrets: async () => (await import('./reload.command.ts')).secretsCommand(),
  operator: async () => (await import('./operator.command.ts')).operatorCommand(),
  'generate-key': async () => (await import('./new-secrets.ts')).generateKeyCommand(),
  completion: async () => (await import('./completion.command.ts')).completionCommand(() => createProgram()),
}

const COMMANDS = Object.fromEntries([OWN, ...WINGS.map(({ commands = {} }) => commands)].flatMap((some) => Object.entries(some)))

/** Creates the program with these commands; by default with all commands. */
export async function createProgram(names: Iterable<string> = new Set([...ORDER, ...Object.keys(COMMANDS)])): Promise<Command> {
  const program = new Command('parcel-relay')
    .description("Receives, polls, merges, serves and relays a carrier's parcel status.")
    .version(VERSION, '--version', 'print the version')
    .showHelpAfterError('"parcel-relay --help" lists all commands.')
  for (const name of names) {
    const command = await COMMANDS[name]?.()
    if (command === undefined) continue
    for (const order of WINGS.flatMap(({ orders = {} }) => orders[name] ?? [])) command.addCommand(await order())
    program.addCommand(command)
  }
  addExamples(program)
  return withExitCodes(program)
}

export async function runProgram(): Promise<void> {
  const asked = process.argv[2] ?? ''
  // A relay goes on without its log.
  if (asked !== 'serve') process.stdout.on('error', endUnwritten)
  const needed = Object.hasOwn(COMMANDS, asked) ? [asked] : asked === '--version' ? [] : undefined
  const program = await createProgram(needed)
  // With --help, commander would answer an unknown command with the general help, as if it were known.
  const isUnknown = needed === undefined && /^\w/.test(asked) && asked !== 'help'
  try {
    await program.parseAsync(isUnknown ? [asked] : process.argv.slice(2), { from: 'user' })
  } catch (error) {
    process.stderr.write(error instanceof CommandFailure ? `${error.message}\n` : `parcel-relay: ${describeFailure(error)}\n`)
    // A failed start may leave a thread that never ends, so end the process.
    const { endProcess } = await import('../../core/runtime/threads/thread.ts')
    await endProcess(EXIT.failed)
  }
}

function serveCommand(): Command {
  return new Command('serve')
    .description('run the relay')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .action(async ({ config }: { readonly config: string }) => {
      const [{ serve }, sections] = await Promise.all([import('../../serving.ts'), loadSections()])
      await serve(config, sections)
    })
}
