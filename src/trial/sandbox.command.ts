import { once } from 'node:events'
import { Command, InvalidArgumentError, Option } from 'commander'
import { controlRoutes } from './sandbox/control-api.ts'
import { type SandboxOptions, sandboxDefaults } from './sandbox/options.ts'
import { hardCases, isHardCase, type Mix } from './sandbox/parcel-plan.ts'
import { startSandbox } from './sandbox/sandbox.ts'

interface Flags {
  readonly host: string
  readonly port: number
  readonly webhookUrl: readonly string[]
  readonly sharedKey: string
  readonly username: string
  readonly password: string
  readonly parcels: number
  readonly seed: number
  readonly speed: number
  readonly paused: boolean
  readonly live: boolean
  readonly hard: number
  readonly mix: Partial<Mix>
  readonly numberOnly?: number
  readonly loss: number
  readonly duplicates: number
  readonly reorder: number
  readonly delay: number
  readonly silence: boolean
  readonly retries: number
  readonly unauthorized: number
  readonly rateLimited: number
  readonly retryAfter: number
  readonly serverErrors: number
  readonly latency: number
  readonly tokenLifetime: number
  readonly tokenForm: 'opaque' | 'jwt'
  readonly languageGaps: number
  readonly json: boolean
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Write a whole number of at least 0.')
  return Number(text)
}

function port(text: string): number {
  const value = wholeNumber(text)
  if (value > 65_535) throw new InvalidArgumentError('Write a port from 0 to 65535.')
  return value
}

function decimal(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError('Write a number of at least 0.')
  return Number(text)
}

function fraction(text: string): number {
  const value = decimal(text)
  if (value > 1) throw new InvalidArgumentError('Write a fraction from 0 to 1.')
  return value
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function duration(text: string): number {
  const [, number = '', unit = 'ms'] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? []
  if (number === '') throw new InvalidArgumentError('Write a duration such as 250ms, 10s or 5m.')
  return Number(number) * (unitsMs[unit] ?? 1)
}

function address(text: string, before: readonly string[]): readonly string[] {
  if (!URL.canParse(text) || !/^https?:/.test(text)) throw new InvalidArgumentError('Write an http or https address.')
  return [...before, text]
}

function share(text: string, before: Partial<Mix>): Partial<Mix> {
  const [name = '', value = ''] = text.split('=', 2)
  if (!isHardCase(name)) throw new InvalidArgumentError(`Write name=fraction; the names are ${hardCases.join(', ')}.`)
  return { ...before, [name]: fraction(value) }
}

const secret = (flags: string, about: string, variable: string, value: string): Option =>
  new Option(flags, about).env(variable).default(value)

function helpOnControl(): string {
  const width = Math.max(...controlRoutes.map(({ route }) => route.length))
  const lines = controlRoutes.map(({ route, about }) => `  ${route.padEnd(width)}  ${about}`)
  return ['', 'Control API (same address, no token):', ...lines, '', `Hard cases (--mix): ${hardCases.join(', ')}`].join('\n')
}

function optionsOf(flags: Flags): SandboxOptions {
  const { host, sharedKey, username, password, parcels, seed, speed, paused, live, hard, retries, tokenForm } = flags
  const { loss, duplicates, reorder, silence, unauthorized, rateLimited, serverErrors, languageGaps } = flags
  return {
    host,
    port: flags.port,
    sharedKey,
    username,
    password,
    parcels,
    seed,
    speed,
    paused,
    live,
    hard,
    retries,
    tokenForm,
    webhookUrls: flags.webhookUrl,
    mix: flags.numberOnly === undefined ? flags.mix : { ...flags.mix, numberOnly: flags.numberOnly },
    faults: {
      loss,
      duplicates,
      reorder,
      silence,
      unauthorized,
      rateLimited,
      serverErrors,
      languageGaps,
      delayMs: flags.delay,
      latencyMs: flags.latency,
      retryAfterSeconds: flags.retryAfter,
      tokenLifetimeMs: flags.tokenLifetime,
    },
  }
}

async function run(flags: Flags): Promise<void> {
  const asked = new AbortController()
  const ask = (): void => asked.abort()
  // Use `on` instead of `once`. Ctrl-C under npm arrives twice, and the second signal must not kill a sandbox that is stopping.
  process.on('SIGTERM', ask).on('SIGINT', ask)
  try {
    const sandbox = await startSandbox(optionsOf(flags))
    const { url } = sandbox
    process.stdout.write(
      flags.json ? `${JSON.stringify({ url })}\n` : `sandbox carrier listening on ${url} (inspect it at ${url}/sandbox/stats)\n`,
    )
    if (!asked.signal.aborted) await once(asked.signal, 'abort')
    await sandbox.stop()
  } finally {
    process.off('SIGTERM', ask).off('SIGINT', ask)
  }
}

/** `parcel-relay sandbox`: runs the carrier emulator until a signal stops it. */
export function sandboxCommand(): Command {
  return new Command('sandbox')
    .description('run a sandbox carrier: its API, its signed pushes, and faults')
    .option('--host <host>', 'address to listen on', sandboxDefaults.host)
    .option('--port <port>', 'port to listen on; 0 for any free one', port, 8090)
    .option('--webhook-url <url>', 'push to this address; may be repeated', address, [])
    .addOption(secret('--shared-key <key>', 'key that signs the pushes', 'SANDBOX_SHARED_KEY', sandboxDefaults.sharedKey))
    .addOption(secret('--username <name>', 'user name for tokens', 'SANDBOX_USERNAME', sandboxDefaults.username))
    .addOption(secret('--password <password>', 'password for tokens', 'SANDBOX_PASSWORD', sandboxDefaults.password))
    .option('--parcels <number>', 'number of parcels', wholeNumber, sandboxDefaults.parcels)
    .option('--seed <number>', 'the same seed gives the same parcels and events', wholeNumber, sandboxDefaults.seed)
    .option('--speed <factor>', 'simulated seconds per second; 0 stops the clock', decimal, sandboxDefaults.speed)
    .option('--paused', 'stop the clock until POST /sandbox/resume', false)
    .option('--live', 'parcels start now and take 56 hours divided by --speed; entries carry the real time', false)
    .option('--hard <fraction>', 'fraction of parcels with a hard case, for each kind of hard case', fraction, sandboxDefaults.hard)
    .option('--mix <name=fraction>', 'fraction of parcels with the hard case of this name; may be repeated', share, {})
    .option('--number-only <fraction>', 'fraction of parcels that answer to their tracking number only', fraction)
    .option('--loss <fraction>', 'fraction of events that are never pushed', fraction, 0)
    .option('--duplicates <fraction>', 'fraction of events that are pushed twice', fraction, 0)
    .option('--reorder <window>', 'shuffle pushes within windows of this size', wholeNumber, 0)
    .option('--delay <duration>', 'delay each push', duration, 0)
    .option('--silence', 'send no pushes', false)
    .option('--retries <number>', 'retries of a push that was not answered with 2xx', wholeNumber, 0)
    .option('--unauthorized <fraction>', 'fraction of status calls answered with 401 although the token is valid', fraction, 0)
    .option('--rate-limited <fraction>', 'fraction of status calls answered with 429', fraction, 0)
    .option('--retry-after <seconds>', 'Retry-After of the answers with 429', wholeNumber, 1)
    .option('--server-errors <fraction>', 'fraction of status calls answered with 500, 502 or 503', fraction, 0)
    .option('--latency <duration>', 'delay every answer', duration, 0)
    .addOption(new Option('--token-lifetime <duration>', 'lifetime of a token').argParser(duration).default(3_600_000, '1h'))
    .addOption(new Option('--token-form <form>', 'jwt tokens contain their expiry').choices(['opaque', 'jwt']).default('opaque'))
    .option('--language-gaps <fraction>', 'fraction of entries with texts in one language only', fraction, 0)
    .option('--json', 'print the address as JSON', false)
    .addHelpText('after', helpOnControl)
    .action(run)
}
