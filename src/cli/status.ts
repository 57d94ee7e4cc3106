import { Command } from 'commander'
import { bytesText, counted, countText } from '../domain/amounts.ts'
import {
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  listOf,
  memberOf,
  openRelay,
  relayAddress,
  textOf,
} from './asking/ask-relay.ts'
import { addressOf } from './asking/configured-relay.ts'
import { openConfig, readConfig } from './config/config-file.ts'
import { EXIT, fail } from './exit-codes.ts'
import { age } from './terminal/ages.ts'
import { paint, plain, type Tone } from './terminal/table.ts'

interface StatusOptions extends ClientOptions {
  readonly config: string
}

export function statusCommand(): Command {
  const command = new Command('status')
    .description('say whether everything works and, if not, what to do; exits with 1 if there is a problem that cannot wait')
    .option('--config <file>', 'the config file, which names the address of the relay', 'config/relay.yaml')
    .action(async (given: StatusOptions, self: Command) => {
      const options = await addressed(given, self)
      if (options === null) return
      const ask = await openRelay(options)
      const answer = await ask('GET', '/relay/overview')
      if (answer.status !== 200) return fail(describeProblem(answer))
      process.stdout.write(options.json === true ? `${JSON.stringify(answer.body)}\n` : present(answer.body, relayAddress(options)))
      if (listOf(answer.body, 'problems').some((problem) => !isWarning(problem))) process.exitCode = EXIT.failed
    })
  return addRelayOptions(command)
}

/**
 * Takes the address of the relay from the config file, as `check` does, unless an address was given. A file that was not given need not exist, because
 * the relay may run on another machine. Null: the file that was given cannot be used, and the command has failed.
 */
async function addressed(options: StatusOptions, self: Command): Promise<ClientOptions | null> {
  if (self.getOptionValueSource('url') !== 'default') return options
  const isGiven = self.getOptionValueSource('config') !== 'default'
  const config = isGiven ? await readConfig(options.config) : await openConfig(options.config).catch(() => null)
  return config === null ? (isGiven ? null : options) : { ...options, ...addressOf(config) }
}

function isWarning(problem: unknown): boolean {
  return textOf(problem, 'severity') === 'warning'
}

function present(overview: unknown, url: string): string {
  const problems = listOf(overview, 'problems')
  const caveats = listOf(overview, 'caveats').map((sentence) => plain(String(sentence)))
  const [below, after] = problems.length === 0 ? [caveats.map((one) => `  ${one}`), []] : [[], caveats.map((one) => `Also: ${one}`)]
  const headline = [headlineOf(overview, problems, caveats.length), ...below].join('\n')
  return [headline, ...problems.map((problem) => presentProblem(problem, url)), ...after, presentFacts(overview)].join('\n\n').concat('\n')
}

function headlineOf(overview: unknown, problems: readonly unknown[], caveatCount: number): string {
  const tone = !problems.every(isWarning) ? 'bad' : problems.length + caveatCount > 0 ? 'warn' : 'good'
  return paint(plain(textOf(overview, 'headline') ?? ''), tone)
}

function presentProblem(problem: unknown, url: string): string {
  const since = textOf(problem, 'since')
  const title = `${plain(textOf(problem, 'title') ?? '')}${since === null ? '' : `, since ${since} (${age(since)})`}`
  const evidence = listOf(problem, 'evidence').map((sentence) => `  ${plain(String(sentence))}`)
  const todo = listOf(problem, 'todo').map((step) => `  -> ${plain(String(step))}`)
  const runbook = `  Runbook: ${url}${textOf(problem, 'runbook') ?? ''}`
  return [paint(title, isWarning(problem) ? 'warn' : 'bad'), ...evidence, ...todo, runbook].join('\n')
}

function presentFacts(overview: unknown): string {
  const of = (group: string, name: string) => memberOf(memberOf(overview, group), name)
  const count = (group: string, name: string) => countText(Number(of(group, name)))
  const text = (group: string, name: string) => textOf(memberOf(overview, group), name)
  const disk = memberOf(overview, 'disk')
  const rows: readonly (readonly [name: string, state: string, evidence: string])[] = [
    ['pushes', text('pushes', 'standing')?.replaceAll('_', ' ') ?? '', text('pushes', 'evidence') ?? ''],
    ...wrongPaths(memberOf(overview, 'pushes')),
    ...comebacks(memberOf(overview, 'pushes')),
    ['carrier', text('carrier', 'standing') ?? '', carrierEvidence(memberOf(overview, 'carrier'))],
    [
      'endpoints',
      Number(of('endpoints', 'failing')) > 0 ? 'failing' : 'ok',
      `${count('endpoints', 'delivering')} delivering, ${count('endpoints', 'untried')} untried, ${count('endpoints', 'failing')} failing, ${count('endpoints', 'disabled')} disabled`,
    ],
    ['inbox', Number(of('inbox', 'quarantined')) > 0 ? 'quarantine' : 'ok', `${count('inbox', 'quarantined')} in quarantine`],
    ['parcels', 'ok', parcelEvidence(memberOf(overview, 'parcels'))],
    ...(disk === null
      ? []
      : [
          [
            'disk',
            text('disk', 'state')?.replaceAll('_', ' ') ?? '',
            `${bytesText(Number(of('disk', 'freeBytes')))} free; the store takes ${bytesText(Number(of('disk', 'storeBytes')))}`,
          ] as const,
        ]),
    ['replicas', 'ok', listOf(overview, 'replicas').join(', ')],
  ]
  return rows
    .map(([name, state, evidence]) => `${name.padEnd(11)}${paint(state.padEnd(STATE_WIDTH), toneOf(state))}${plain(evidence)}`)
    .join('\n')
}

/** A login counts as a call, but not as an answer. After a restart, the relay does not know when the carrier last answered. */
function carrierEvidence(carrier: unknown): string {
  const [at, calls] = [textOf(carrier, 'lastAnswerAt'), Number(memberOf(carrier, 'callsToday'))]
  const isUnasked = textOf(carrier, 'standing') === 'unasked'
  const answered = at !== null ? `answered ${age(at)} ago` : isUnasked ? 'not asked about a parcel' : 'has not answered'
  const used = `${countText(calls)} of today's ${countText(Number(memberOf(carrier, 'callsPerDay')))} calls ${calls === 1 ? 'is' : 'are'} used`
  return `${answered}${at === null ? ' since the relay started' : ''}; ${used}${isUnasked && calls > 0 ? ', logins included' : ''}`
}

function parcelEvidence(parcels: unknown): string {
  const count = (name: string) => countText(Number(memberOf(parcels, name)))
  const unknown =
    Number(memberOf(parcels, 'unknown')) > 0
      ? `, ${count('unknown')} given up as unknown to the carrier (parcel-relay parcels --stopped unknown)`
      : ''
  return `${count('known')} known, ${count('watched')} polled, ${count('overdue')} due now${unknown}`
}

/** Lists wrong paths to which somebody posted a signed request after the last push arrived. Perhaps the carrier pushes to a wrong address. */
function wrongPaths(pushes: unknown): readonly (readonly [name: string, state: string, evidence: string])[] {
  const lastPushAt = textOf(pushes, 'lastPushAt') ?? ''
  const telling = listOf(pushes, 'misdirected').filter(
    (one) => memberOf(one, 'signed') === true && (textOf(one, 'lastAt') ?? '') > lastPushAt,
  )
  return telling.slice(0, WRONG_PATHS_SHOWN).map((one) => {
    const times = counted(Number(memberOf(one, 'count')), 'time', 'times')
    return ['', 'wrong path', `POST ${textOf(one, 'path') ?? ''}: 404, ${times} since ${textOf(one, 'firstAt') ?? ''}`]
  })
}

/** Lists the periods whose refused pushes have all come again. So an operator who saw the refusals knows that nothing is lost. */
function comebacks(pushes: unknown): readonly (readonly [name: string, state: string, evidence: string])[] {
  return listOf(pushes, 'refused').flatMap((spell) => {
    const [count, again] = [Number(memberOf(spell, 'pushes')), Number(memberOf(spell, 'again'))]
    if (count === 0 || again < count) return []
    const which = `${counted(count, 'push that was', 'pushes that were')} answered with 503 from ${textOf(spell, 'from') ?? ''} until ${textOf(spell, 'until') ?? ''}`
    return [['', 'come again', `${which}: all have come again`] as const]
  })
}

const WRONG_PATHS_SHOWN = 3
/** The width of the longest state and a space, in characters. */
const STATE_WIDTH = 15

const BAD = ['silent', 'refused', 'failing', 'full']
const ODD = ['lossy', 'resumed', 'not understood', 'wrong path', 'troubled', 'quarantine', 'low']

function toneOf(state: string): Tone {
  if (BAD.includes(state)) return 'bad'
  if (ODD.includes(state)) return 'warn'
  return ['none', 'too early', 'unasked'].includes(state) ? 'dim' : 'good'
}
