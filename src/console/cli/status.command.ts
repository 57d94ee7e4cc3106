import { Command } from 'commander'
import type { LoadSections } from '../../core/config/schema.ts'
import { bytesText, counted, countText } from '../../core/domain/amounts.ts'
import type { OverviewAnswer } from '../overview/overview.routes.ts'
import { addRelayOptions, type ClientOptions, openRelay, order, print, relayAddress } from './asking/ask-relay.ts'
import { addressOf, openConfig, readConfig } from './asking/config-file.ts'
import { EXIT } from './exit-codes.ts'
import { age, paint, plain, type Tone } from './terminal.ts'

interface StatusOptions extends ClientOptions {
  readonly config: string
}

export function statusCommand(loadSections: LoadSections): Command {
  const command = new Command('status')
    .description('say whether everything works and, if not, what to do; exits with 1 if there is a problem that cannot wait')
    .option('--config <file>', 'the config file, which names the address of the relay', 'config/relay.yaml')
    .action(async (given: StatusOptions, self: Command) => {
      const options = await addressed(given, self, loadSections)
      if (options === null) return
      const ask = await openRelay(options)
      const overview = await order<OverviewAnswer>(ask, 'GET', '/relay/overview')
      print(options, overview, present(overview, relayAddress(options)))
      if (!overview.problems.every(isWarning)) process.exitCode = EXIT.failed
    })
  return addRelayOptions(command)
}

/**
 * Takes the address of the relay from the config file, as `check` does, unless an address was given. A file that was not given need not exist, because
 * the relay may run on another machine. Null: the file that was given cannot be used, and the command has failed.
 */
async function addressed(options: StatusOptions, self: Command, loadSections: LoadSections): Promise<ClientOptions | null> {
  if (self.getOptionValueSource('url') !== 'default') return options
  const isGiven = self.getOptionValueSource('config') !== 'default'
  const sections = await loadSections()
  const config = isGiven ? await readConfig(options.config, sections) : await openConfig(options.config, sections).catch(() => null)
  return config === null ? (isGiven ? null : options) : { ...options, ...addressOf(config) }
}

type Problem = OverviewAnswer['problems'][number]
/** `tone` absent: it follows from the state. */
type Fact = readonly [name: string, state: string, evidence: string, tone?: Tone]

function isWarning({ severity }: Problem): boolean {
  return severity === 'warning'
}

function present(overview: OverviewAnswer, url: string): string {
  const { problems } = overview
  const caveats = overview.caveats.map(plain)
  const [below, after] = problems.length === 0 ? [caveats.map((one) => `  ${one}`), []] : [[], caveats.map((one) => `Also: ${one}`)]
  const tone = !problems.every(isWarning) ? 'bad' : problems.length + caveats.length > 0 ? 'warn' : 'good'
  const headline = [paint(plain(overview.headline), tone), ...below].join('\n')
  return [headline, ...problems.map((problem) => presentProblem(problem, url)), ...after, presentFacts(overview)].join('\n\n').concat('\n')
}

function presentProblem(problem: Problem, url: string): string {
  const { since } = problem
  const title = `${plain(problem.title)}${since === null ? '' : `, since ${since} (${age(since)})`}`
  const evidence = problem.evidence.map((sentence) => `  ${plain(sentence)}`)
  const todo = problem.todo.map((step) => `  -> ${plain(step)}`)
  return [paint(title, isWarning(problem) ? 'warn' : 'bad'), ...evidence, ...todo, `  Runbook: ${url}${problem.runbook}`].join('\n')
}

function presentFacts({ pushes, carrier, endpoints, inbox, parcels, watchdogs, disk, replicas }: OverviewAnswer): string {
  const [delivering, untried, failing, disabled] = (['delivering', 'untried', 'failing', 'disabled'] as const).map((name) =>
    countText(endpoints[name]),
  )
  const rows: readonly Fact[] = [
    ['pushes', pushes.state.words, pushes.evidence, TONES[pushes.state.tone]],
    ...wrongPaths(pushes),
    ...comebacks(pushes),
    ['carrier', carrier.state.words, carrierEvidence(carrier), TONES[carrier.state.tone]],
    [
      'endpoints',
      endpoints.failing > 0 ? 'failing' : 'ok',
      `${delivering} delivering, ${untried} untried, ${failing} failing, ${disabled} disabled`,
    ],
    ['inbox', inbox.quarantined > 0 ? 'quarantine' : 'ok', `${countText(inbox.quarantined)} in quarantine`],
    ['parcels', 'ok', parcelEvidence(parcels)],
    ...(watchdogs === null ? [] : [stalledFact(watchdogs)]),
    ...(disk === null ? [] : [diskFact(disk)]),
    ['replicas', 'ok', replicas.join(', ')],
  ]
  const width = Math.max(STATE_WIDTH, ...rows.map(([, state]) => state.length + 2))
  return rows
    .map(([name, state, evidence, tone = toneOf(state)]) => `${name.padEnd(11)}${paint(state.padEnd(width), tone)}${plain(evidence)}`)
    .join('\n')
}

function stalledFact({ stalled, isAll }: NonNullable<OverviewAnswer['watchdogs']>): Fact {
  if (stalled === 0) return ['watchdogs', 'none stalled', 'no rule finds a parcel stalled']
  return ['watchdogs', `${isAll ? '' : '>= '}${countText(stalled)} stalled`, 'parcel-relay watchdogs says which, and why', 'warn']
}

function diskFact({ state, freeBytes, storeBytes }: NonNullable<OverviewAnswer['disk']>): Fact {
  return ['disk', state.replaceAll('_', ' '), `${bytesText(freeBytes)} free; the store takes ${bytesText(storeBytes)}`]
}

/** A login counts as a call, but not as an answer. After a restart, the relay does not know when the carrier last answered. */
function carrierEvidence({ standing, lastAnswerAt: at, callsToday: calls, callsPerDay }: OverviewAnswer['carrier']): string {
  const isUnasked = standing === 'unasked'
  const answered = at !== null ? `answered ${age(at)} ago` : isUnasked ? 'not asked about a parcel' : 'has not answered'
  const used = `${countText(calls)} of today's ${countText(callsPerDay)} calls ${calls === 1 ? 'is' : 'are'} used`
  return `${answered}${at === null ? ' since the relay started' : ''}; ${used}${isUnasked && calls > 0 ? ', logins included' : ''}`
}

function parcelEvidence({ known, watched, overdue, unknown }: OverviewAnswer['parcels']): string {
  const givenUp = unknown > 0 ? `, ${countText(unknown)} given up as unknown to the carrier (parcel-relay parcels --stopped unknown)` : ''
  return `${countText(known)} known, ${countText(watched)} polled, ${countText(overdue)} due now${givenUp}`
}

/** Lists wrong paths to which somebody posted a signed request after the last push arrived. Perhaps the carrier pushes to a wrong address. */
function wrongPaths({ lastPushAt, misdirected }: OverviewAnswer['pushes']): readonly Fact[] {
  const telling = misdirected.filter(({ signed, lastAt }) => signed && lastAt > (lastPushAt ?? ''))
  return telling
    .slice(0, WRONG_PATHS_SHOWN)
    .map(({ path, count, firstAt }) => ['', 'wrong path', `POST ${path}: 404, ${counted(count, 'time', 'times')} since ${firstAt}`])
}

/** Lists the periods whose refused pushes have all come again. So an operator who saw the refusals knows that nothing is lost. */
function comebacks({ refused }: OverviewAnswer['pushes']): readonly Fact[] {
  return refused.flatMap(({ pushes, again, from, until, occasions, lastFrom }): readonly Fact[] => {
    if (pushes === null || pushes === 0 || (again ?? 0) < pushes) return []
    const which = `${counted(pushes, 'push that was', 'pushes that were')} answered with 503`
    const when =
      occasions <= 1
        ? `from ${from} until ${until}`
        : `on ${occasions} occasions between ${from} and ${until} (the last one from ${lastFrom})`
    return [['', 'come again', `${which} ${when}: all have come again`]]
  })
}

const WRONG_PATHS_SHOWN = 3
/** The least width of a state, in characters. */
const STATE_WIDTH = 15

const TONES: Readonly<Record<OverviewAnswer['pushes']['state']['tone'], Tone>> = {
  ok: 'good',
  warn: 'warn',
  bad: 'bad',
  off: 'dim',
  none: 'dim',
}
const BAD = ['failing', 'full']
const ODD = ['wrong path', 'quarantine', 'low']

function toneOf(state: string): Tone {
  if (BAD.includes(state)) return 'bad'
  if (ODD.includes(state)) return 'warn'
  return 'good'
}
