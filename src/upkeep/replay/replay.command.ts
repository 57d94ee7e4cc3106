import { Command, InvalidArgumentError, Option } from 'commander'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeDeliveryProblem,
  describeParcelProblem,
  describeProblem,
  openRelay,
  print,
} from '../../console/cli/asking/ask-relay.ts'
import { findEndpoint } from '../../console/cli/asking/lists.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { age, readTimeOption } from '../../console/cli/terminal.ts'
import { counted } from '../../core/domain/amounts.ts'
import type { DeliveryAnswer } from '../../core/http/delivery/deliveries.routes.ts'
import { followJob, reportJob } from '../jobs/follow-job.ts'
import type { ReplayAnswer, ReplayCountAnswer } from './replay.routes.ts'

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

async function replayEach(ask: AskRelay, ids: readonly string[], options: ReplayOptions): Promise<void> {
  const { to, dryRun = false } = options
  const target = to === undefined ? null : await findEndpoint(ask, to)
  const text = JSON.stringify(target === null ? {} : { to: target.id })
  for (const id of ids) {
    const path = `/relay/deliveries/${encodeURIComponent(id)}`
    const found = await ask<DeliveryAnswer>('GET', path)
    if (!found.ok) {
      fail(await describeDeliveryProblem(ask, id, found, (name) => `replay --endpoint ${name} --since 24h`))
      continue
    }
    const { state, endpoint } = found.body
    const name = target?.name ?? endpoint.name
    if (dryRun && !['delivered', 'dead', 'cancelled'].includes(state)) {
      fail(`${id}: it has not ended (${state}), so it need not be sent again`)
      continue
    }
    const answer = dryRun ? null : await ask('POST', `${path}/replay`, { type: 'application/json', text })
    if (answer?.ok === false) fail(`${id}: ${describeProblem(answer)}`)
    else print(options, { id, to: name, dryRun }, `${id}: ${dryRun ? 'would be sent to' : 'queued for'} ${name} again\n`)
  }
}

async function replayMany(
  ask: AskRelay,
  { id, name }: { readonly id: string; readonly name: string },
  options: ReplayOptions,
  parcel: string | undefined,
): Promise<void> {
  const { since, sequence, state, dryRun = false } = options
  const of = options.of === undefined ? undefined : await sourceOf(ask, options.of)
  const text = JSON.stringify({ since, sequence, parcel, of, state, dryRun })
  const answer = await ask<ReplayAnswer | ReplayCountAnswer>('POST', `/relay/endpoints/${id}/replay`, { type: 'application/json', text })
  if (!answer.ok && answer.status === 404 && parcel !== undefined) return fail(await describeParcelProblem(ask, parcel, answer))
  if (!answer.ok) return fail(describeProblem(answer))
  const { body } = answer
  if ('id' in body) {
    const job = reportJob(await followJob(ask, body.id, { whole: ['queueing', UNIT[1]] }), CANCELLED, options)
    if (job !== null) process.stdout.write(`${counted(job.progress.done, ...UNIT)} queued for ${name} again.\n`)
    return
  }
  const about = parcel === undefined ? '' : ` about ${parcel}`
  const why = body.because === undefined ? '' : ` ${body.because}`
  const said = body.dryRun
    ? `${presentCount(body, { name, about })} Nothing was sent.`
    : `${counted(body.count, ...UNIT)}${about} queued for ${name} again.`
  print(options, body, `${said}${why}\n`)
}

const CANCELLED = 'cancelled: the deliveries that were queued before are sent'

const UNIT = ['delivery', 'deliveries'] as const

interface Target {
  readonly name: string
  /** ` about ` and the parcels that the user named; empty: none. */
  readonly about: string
}

function presentCount({ count, more, parcels, oldestQueuedAt }: ReplayCountAnswer, { name, about }: Target): string {
  const oldest = `the oldest from ${age(oldestQueuedAt)} ago`
  const which = about === '' ? ` about ${counted(parcels, 'parcel', 'parcels')}` : about
  return `${more ? 'More than ' : ''}${counted(count, ...UNIT)}${count === 0 ? about : `${which}, ${oldest},`} would be sent to ${name} again.`
}

/** Returns the id of the endpoint whose deliveries are sent. A removed endpoint can be named only by its id. */
async function sourceOf(ask: AskRelay, nameOrId: string): Promise<string> {
  return /^\d{1,15}$/.test(nameOrId) ? nameOrId : (await findEndpoint(ask, nameOrId)).id
}
