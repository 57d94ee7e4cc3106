import { Command, InvalidArgumentError, Option } from 'commander'
import { counted } from '../../domain/amounts.ts'
import { type AskRelay, addRelayOptions, type ClientOptions, describeProblem, memberOf, openRelay, textOf } from '../asking/ask-relay.ts'
import { followJob } from '../asking/follow-job.ts'
import { describeDeliveryProblem, describeParcelProblem } from '../asking/unknown.ts'
import { findEndpoint } from '../endpoints/find-endpoint.ts'
import { fail, failUsage } from '../exit-codes.ts'
import { age, readTimeOption } from '../terminal/ages.ts'

interface ReplayOptions extends ClientOptions {
  readonly endpoint?: string
  readonly to?: string
  readonly since?: string | number
  readonly sequence?: number
  readonly parcel?: readonly string[]
  readonly of?: string
  readonly state?: string
  readonly dryRun?: boolean
}

/** `replay`, and `deliveries replay`. */
export function replayCommand(): Command {
  const command = new Command('replay')
    .description('send deliveries again: the ones you name, or all that failed at an endpoint')
    .argument('[ids...]', 'deliveries')
    .option('--to <endpoint>', 'send the deliveries named to this endpoint instead of their own')
    .option('--endpoint <endpoint>', 'send many to this endpoint, by its name or id')
    .option(
      '--since <time>',
      'with --endpoint: deliveries queued since a time (2026-03-01T10:00:00Z, or 2h for two hours ago), or from a sequence on',
      readPlace,
    )
    .option('--sequence <sequence>', 'with --endpoint: only the event with this sequence', readSequence)
    .option('--parcel <identifier>', 'with --endpoint: only events of this parcel; may be given several times', collect)
    .option('--of <endpoint>', 'with --endpoint: deliveries of another endpoint; name a removed endpoint by its id')
    .addOption(
      new Option('--state <state>', 'with --endpoint: deliveries in this state, instead of dead and cancelled ones').choices([
        'delivered',
        'dead',
        'cancelled',
      ]),
    )
    .option('--dry-run', 'only say what would be sent')
    .action(async (ids: readonly string[], options: ReplayOptions) => {
      const { endpoint, since, sequence, parcel, of } = options
      if ((ids.length === 0) === (endpoint === undefined)) return failUsage('replay: name deliveries by id, or an endpoint with --endpoint')
      if (endpoint !== undefined && [since, sequence, parcel, of].every((given) => given === undefined))
        return failUsage('replay: with --endpoint say what to send: --since, --sequence, --parcel or --of')
      const ask = await openRelay(options)
      if (endpoint === undefined) return await replayEach(ask, ids, options)
      const target = await findEndpoint(ask, endpoint)
      for (const one of parcel ?? [undefined]) await replayMany(ask, target, options, one)
    })
  return addRelayOptions(command)
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

function readPlace(text: string): string | number {
  return /^\d{1,15}$/.test(text) ? Number(text) : readTimeOption(text)
}

function readSequence(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a sequence of the feed, a whole number.')
  return Number(text)
}

async function replayEach(ask: AskRelay, ids: readonly string[], { to, dryRun, json }: ReplayOptions): Promise<void> {
  const target = to === undefined ? null : await findEndpoint(ask, to)
  for (const id of ids) {
    const path = `/relay/deliveries/${encodeURIComponent(id)}`
    const found = await ask('GET', path)
    const own = textOf(memberOf(found.body, 'endpoint'), 'name') ?? ''
    if (found.status !== 200) {
      fail(await describeDeliveryProblem(ask, id, found, (name) => `replay --endpoint ${name} --since 24h`))
      continue
    }
    const state = textOf(found.body, 'state') ?? ''
    const isEnded = ['delivered', 'dead', 'cancelled'].includes(state)
    if (dryRun === true) {
      if (!isEnded) fail(`${id}: it has not ended (${state}), so it need not be sent again`)
      else if (json === true) process.stdout.write(`${JSON.stringify({ id, to: target?.name ?? own, dryRun: true })}\n`)
      else process.stdout.write(`${id}: would be sent to ${target?.name ?? own} again\n`)
      continue
    }
    const text = JSON.stringify(target === null ? {} : { to: target.id })
    const answer = await ask('POST', `${path}/replay`, { type: 'application/json', text })
    if (answer.status !== 202) fail(`${id}: ${describeProblem(answer)}`)
    else if (json === true) process.stdout.write(`${JSON.stringify({ id, to: target?.name ?? own, dryRun: false })}\n`)
    else process.stdout.write(`${id}: queued for ${target?.name ?? own} again\n`)
  }
}

async function replayMany(
  ask: AskRelay,
  { id, name }: { readonly id: string; readonly name: string },
  options: ReplayOptions,
  parcel: string | undefined,
): Promise<void> {
  const { since, sequence, state, dryRun = false, json } = options
  const of = options.of === undefined ? undefined : await sourceOf(ask, options.of)
  const text = JSON.stringify({ since, sequence, parcel, of, state, dryRun })
  const answer = await ask('POST', `/relay/endpoints/${id}/replay`, { type: 'application/json', text })
  const jobId = textOf(answer.body, 'id')
  if (answer.status === 404 && parcel !== undefined) return fail(await describeParcelProblem(ask, parcel, answer))
  if (answer.status !== 200 && answer.status !== 202) return fail(describeProblem(answer))
  const to = { name, about: parcel === undefined ? '' : ` about ${parcel}` }
  if (jobId !== null) return await reportJob(ask, jobId, to, options)
  if (json === true) return void process.stdout.write(`${JSON.stringify(answer.body)}\n`)
  const count = Number(memberOf(answer.body, 'count'))
  const because = textOf(answer.body, 'because')
  const why = because === null ? '' : ` ${because}`
  if (!dryRun) return void process.stdout.write(`${counted(count, ...UNIT)}${to.about} queued for ${name} again.${why}\n`)
  process.stdout.write(`${presentCount(answer.body, to)} Nothing was sent.${why}\n`)
}

const UNIT = ['delivery', 'deliveries'] as const

interface Target {
  readonly name: string
  /** ` about ` and the parcels that the user named; empty: none. */
  readonly about: string
}

function presentCount(answer: unknown, { name, about }: Target): string {
  const count = Number(memberOf(answer, 'count'))
  const oldest = `the oldest from ${age(textOf(answer, 'oldestQueuedAt'))} ago`
  const more = memberOf(answer, 'more') === true ? 'More than ' : ''
  const parcels = about === '' ? ` about ${counted(Number(memberOf(answer, 'parcels')), 'parcel', 'parcels')}` : about
  return `${more}${counted(count, ...UNIT)}${count === 0 ? about : `${parcels}, ${oldest},`} would be sent to ${name} again.`
}

/** Returns the id of the endpoint whose deliveries are sent. A removed endpoint can be named only by its id. */
async function sourceOf(ask: AskRelay, nameOrId: string): Promise<string> {
  return /^\d{1,15}$/.test(nameOrId) ? nameOrId : (await findEndpoint(ask, nameOrId)).id
}

async function reportJob(ask: AskRelay, id: string, { name }: Pick<Target, 'name'>, { json }: ClientOptions): Promise<void> {
  const job = await followJob(ask, id, { whole: ['queueing', UNIT[1]] })
  const state = textOf(job, 'state')
  if (json === true) process.stdout.write(`${JSON.stringify(job)}\n`)
  if (state === 'cancelled') return fail('cancelled: the deliveries that were queued before are sent')
  if (state !== 'done') return fail(textOf(job, 'failure') ?? `the job ended as ${state}`)
  if (json !== true)
    process.stdout.write(`${counted(Number(memberOf(memberOf(job, 'progress'), 'done')), ...UNIT)} queued for ${name} again.\n`)
}
