import { resolve } from 'node:path'
import { Command } from 'commander'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  lookForRelay,
  openRelay,
} from '../../console/cli/asking/ask-relay.ts'
import { addressOf, openConfig } from '../../console/cli/asking/config-file.ts'
import { everyEndpoint } from '../../console/cli/asking/lists.ts'
import { EXIT } from '../../console/cli/exit-codes.ts'
import type { Verdict } from '../../console/problems/concern.ts'
import { type Config, ConfigError } from '../../core/config/config.ts'
import type { LoadSections } from '../../core/config/schema.ts'
import { fingerprintKey } from '../../core/domain/delivery/endpoint-keys.ts'
import { systemCode } from '../../core/domain/errors.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { InspectedEndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import type { LoadServerStores } from '../stores-on-servers.ts'
import type { CheckAnswer } from './check.routes.ts'
import { type CheckLine, failed, inOrder, isRed, ok, warning } from './check.rules.ts'

interface CheckOptions extends ClientOptions {
  readonly config: string
}

/** `check`: reports whether a deployment works and, if not, why. If a relay is running, asks it. Otherwise checks by itself. */
export function checkCommand(loadServer: LoadServerStores, loadSections: LoadSections): Command {
  const command = new Command('check')
    .description('check whether this deployment works, and say why if it does not: config, keys, store, disk, carrier, endpoints')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .action(async (options: CheckOptions, self: Command) => {
      const isGiven = self.getOptionValueSource('url') !== 'default'
      // Someone who gives `--url` but no `--config` asks about the config of that relay, not about a local file.
      const hasFile = !isGiven || self.getOptionValueSource('config') !== 'default'
      const lines = inOrder(await check(options, { isGiven, hasFile, loadServer, loadSections }))
      process.stdout.write(options.json === true ? `${JSON.stringify({ ok: !isRed(lines), lines })}\n` : present(lines))
      if (isRed(lines)) process.exitCode = EXIT.failed
    })
  return addRelayOptions(command)
}

/** `isGiven`: the address of the relay was given. `hasFile`: a config file on this machine is to be checked. */
interface Asked {
  readonly isGiven: boolean
  readonly hasFile: boolean
  readonly loadServer: LoadServerStores
  readonly loadSections: LoadSections
}

async function check(options: CheckOptions, asked: Asked): Promise<readonly CheckLine[]> {
  const file = await readFile(options.config, asked)
  if (asked.isGiven) return await checkAt(options, file, asked)
  if ('config' in file) return await checkAt({ ...options, ...addressOf(file.config) }, file, asked)
  const lines = await checkAt(options, file, asked)
  return lines.map((line) => (line.name === 'relay' ? { ...line, message: `${line.message} ${assumed(options)}` } : line))
}

/** Says which address was tried, because the config that names the right address cannot be read. */
function assumed({ url, config }: CheckOptions): string {
  return `The relay was looked for at ${url}, the default address, because the address in ${resolve(config)} cannot be read. To look elsewhere, use --url.`
}

async function checkAt(client: CheckOptions, config: CheckedConfig, { hasFile, loadServer }: Asked): Promise<readonly CheckLine[]> {
  const absent = await lookForRelay(client)
  const running = absent === null
  if (running && client.username !== undefined && client.password !== undefined) {
    const asked = await askRelay(client, hasFile && 'config' in config ? config.config : null)
    if ('unset' in config) return hasFile ? [...config.unset, ...asked] : asked
    // The relay may have read the file long ago, so report on the file as it is now.
    return hasFile ? [...config.lines, ...asked.filter(({ name }) => name !== 'config')] : asked
  }
  const relay = running
    ? warning(`A relay runs at ${client.url}. Set RELAY_USERNAME and RELAY_PASSWORD to the login of an app with the scope admin to ask it.`)
    : { state: 'skipped' as const, message: describeAbsence(absent, client.url) }
  const lines: readonly CheckLine[] = [{ name: 'relay', subject: null, ...relay }]
  if ('unset' in config) return [...lines, ...(running ? config.unset : [...config.lines, ...config.unset])]
  if (!('config' in config)) {
    if (hasFile) return [...lines, ...config.lines]
    return running ? lines : [{ name: 'relay', subject: null, ...failed(`${describeAbsence(absent, client.url)} ${STARTING}`) }]
  }
  const { checkStandalone } = await import('./standalone-check.ts')
  return [...lines, ...(await checkStandalone(config.config, { isRunning: running, server: await loadServer() }))]
}

const STARTING =
  'Perhaps it still starts: try again in a moment, and look at its log. To check this machine without a relay, name its config with --config FILE.'

/** If nothing listens at the address, gives no advice, because that may be intended. */
function describeAbsence(why: Error, url: string): string {
  return systemCode(why.cause) === 'ECONNREFUSED' ? `No relay answers at ${url}.` : why.message.replace(/^no/, 'No').replace(/[^?]$/, '$&.')
}

interface CheckedFile {
  readonly lines: readonly CheckLine[]
}

/**
 * A valid config with the lines about it, or only the lines about its mistakes. `unset`: lines about variables that are not set in this shell, if
 * nothing else is wrong. The relay itself may have them, so this need not be a fault of the deployment.
 */
type CheckedConfig = (CheckedFile & { readonly config: Config }) | (CheckedFile & { readonly unset: readonly CheckLine[] }) | CheckedFile

async function readFile(path: string, { loadSections }: Pick<Asked, 'loadSections'>): Promise<CheckedConfig> {
  const line = (verdict: Pick<CheckLine, 'state' | 'message'>): CheckLine => ({ name: 'config', subject: null, ...verdict })
  try {
    const config = await openConfig(path, await loadSections())
    const found = [...config.conflicts.map(failed), ...config.warnings.map(warning)].map(line)
    return { config, lines: found.length > 0 ? found : [line({ state: 'ok', message: `${resolve(path)} has no mistakes.` })] }
  } catch (error) {
    if (!(error instanceof ConfigError)) return { lines: [line(failed(describeFailure(error)))] }
    const lines = error.problems.map((problem) => line(failed(problem)))
    const { unsetVariables } = error
    return unsetVariables.length === 0 ? { lines } : { lines, unset: [line(warning(describeUnset(unsetVariables)))] }
  }
}

function describeUnset(names: readonly string[]): string {
  const credentials = names.filter((name) => name.startsWith('/'))
  const variables = names.filter((name) => !name.startsWith('/'))
  const gone =
    'The config names credentials of systemd, which exist only while the service runs, so the file cannot be checked here. Start the service, and ask it: `parcel-relay check` without --config. If it does not start, `journalctl -u parcel-relay` says why.'
  if (variables.length === 0) return gone
  if (credentials.length > 0) return `${gone} ${describeUnset(variables)}`
  const [are, them] = variables.length === 1 ? ['is', 'it'] : ['are', 'them']
  return `${variables.join(', ')} ${are} not set in this shell, so the file cannot be checked here. The relay's own environment may have ${them}. To check the file here, load the relay's variables first, for example: set -a && . ./relay.env`
}

/** `config`: the config of this machine, whose keys are compared with the relay's; null: compare nothing. */
async function askRelay(client: CheckOptions, config: Config | null): Promise<readonly CheckLine[]> {
  try {
    const ask = await openRelay(client)
    const answer = await ask<CheckAnswer>('GET', '/relay/check')
    if (!answer.ok) throw new Error(describeProblem(answer))
    const { lines } = answer.body
    return config === null ? lines : [...lines, ...(await compareKeys(ask, config))]
  } catch (error) {
    return [{ name: 'relay', subject: null, ...failed(describeFailure(error)) }]
  }
}

const WORDS: Readonly<Record<Verdict['state'], string>> = { ok: 'ok', warning: 'WARN', failed: 'FAIL', skipped: '-' }

function present(lines: readonly CheckLine[]): string {
  const names = lines.map(({ name, subject }) => `${name.replace('_', ' ')}${subject === null ? '' : ` ${subject}`}`)
  const width = Math.max(...names.map((name) => name.length))
  const rows = lines.map(
    ({ state, message }, at) => `${WORDS[state].padEnd(4)}  ${(names[at] ?? '').padEnd(width)}  ${indented(message, width + 8)}`,
  )
  const [failures, warnings] = (['failed', 'warning'] as const).map((state) => lines.filter((line) => line.state === state).length)
  const sum = failures === 0 ? 'No check has failed' : `${failures} of ${lines.length} ${failures === 1 ? 'fails' : 'fail'}`
  return `${rows.join('\n')}\n\n${sum}${warnings === 0 ? '' : `; ${warnings} ${warnings === 1 ? 'needs' : 'need'} a look`}.\n`
}

function indented(message: string, columns: number): string {
  return message.replaceAll('\n', `\n${' '.repeat(columns)}`)
}

/** At most this many endpoints are compared, because each takes a request to the relay. */
const COMPARED_MAX = 200

/**
 * Compares the endpoints' keys in a config file with the keys of a running relay, by fingerprint. Two keys differ if the file was changed after
 * the relay read it, or if an environment variable has another value in this shell.
 */
async function compareKeys(ask: AskRelay, { endpoints }: Pick<Config, 'endpoints'>): Promise<readonly CheckLine[]> {
  if (endpoints.length === 0) return []
  const standing = (await everyEndpoint(ask)).filter(({ origin }) => origin === 'config')
  const idOf = new Map(standing.map(({ name, id }) => [name, id]))
  const lines: CheckLine[] = []
  const compared = endpoints.filter(({ name }) => idOf.has(name)).slice(0, COMPARED_MAX)
  for (const { name, sharedKey } of compared) {
    const shown = await ask<InspectedEndpointAnswer>('GET', `/relay/endpoints/${idOf.get(name)}`)
    const running = shown.ok ? shown.body.keyFingerprint : null
    const written = fingerprintKey(sharedKey.reveal())
    if (running === null || running === written) continue
    const how = sharedKey.from !== null && 'env' in sharedKey.from ? 'restart the relay with the new value' : 'run "parcel-relay reload"'
    const message = `The file has another key (fingerprint ${written}) than the running relay (${running}). If the file is right, ${how}.`
    lines.push({ name: 'keys', subject: `endpoints.${name}`, ...warning(message) })
  }
  if (compared.length === 0 || lines.length > 0) return lines
  return [{ name: 'keys', subject: 'endpoints', ...ok('The running relay has the keys of the file.') }]
}
