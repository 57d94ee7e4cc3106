import { setTimeout as pause } from 'node:timers/promises'
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { DELIVERY_STATES } from '../../core/flow/delivery/manage-deliveries.ts'
import type { DeliveryAnswer } from '../../core/http/delivery/deliveries.routes.ts'
import type { FeedAnswer } from '../../core/http/delivery/events.routes.ts'
import type { PageAnswer } from '../../core/http/server/answer-schemas.ts'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  openRelay,
  type Refusal,
  type RelayAnswer,
} from './asking/ask-relay.ts'
import { findEndpoint } from './asking/lists.ts'
import { deliveryLine } from './deliveries.command.ts'
import { EXIT, failUsage } from './exit-codes.ts'
import { plain } from './terminal.ts'

interface TailOptions extends ClientOptions {
  readonly lines: number
  readonly after?: number
  readonly endpoint?: string
  readonly state?: string
}

const LOOK_EVERY_MS = 1000
/** Each request lists this many of the newest deliveries. */
const LIST_MAX = 200
const BEYOND_THE_END = 999_999_999_999_999
/** How long a request for the feed waits for new events. The relay allows at most 50 s. */
const WAIT = '30s'
/** If the relay does not answer, for example while it restarts, ask again after this time. */
const AGAIN_AFTER_MS = 2000

export function tailCommand(): Command {
  const command = new Command('tail')
    .description('show what happens, as it happens: events of the feed, or deliveries; Ctrl-C ends it')
    .addArgument(new Argument('[what]', 'what to show').choices(['feed', 'deliveries']).default('feed'))
    .option('-n, --lines <count>', `begin with this many earlier events or deliveries; at most ${LIST_MAX} deliveries`, readCount, 10)
    .option('--after <sequence>', 'feed: begin after this sequence', readCount)
    .option('--endpoint <endpoint>', 'deliveries: only deliveries to this endpoint, by its name or id')
    .addOption(new Option('--state <state>', 'deliveries: only deliveries in this state').choices(DELIVERY_STATES))
    .action(async (what: 'feed' | 'deliveries', options: TailOptions) => {
      if (what === 'feed' && (options.endpoint ?? options.state) !== undefined)
        return failUsage('tail: --endpoint and --state belong to deliveries')
      if (what === 'deliveries' && options.after !== undefined) return failUsage('tail: --after belongs to the feed')
      if (what === 'deliveries' && options.lines > LIST_MAX)
        return failUsage(
          `tail: the list begins with at most ${LIST_MAX} earlier deliveries: "parcel-relay deliveries --limit ${options.lines}" lists more`,
        )
      const ask = await openRelay(options)
      endQuietly()
      if (what === 'feed') await followFeed(ask, options)
      else await followDeliveries(ask, options)
    })
  return addRelayOptions(command, { adminFor: 'deliveries' })
}

/** Makes the process end with exit code 0 on Ctrl-C, or when the program that reads its output has ended. */
function endQuietly(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(EXIT.ok))
}

function readCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 0.')
  return Number(text)
}

async function followFeed(ask: AskRelay, { lines, after, json }: TailOptions): Promise<never> {
  const patient = createPatientAsk(ask)
  let position = after ?? Math.max(0, (await lastSequence(patient)) - lines)
  for (;;) {
    const answer = await patient<FeedAnswer>(`/relay/events?after=${position}&limit=100&wait=${WAIT}`)
    if (!answer.ok) {
      // The feed has no events at this position: they were pruned, or the relay was restored from an older backup. Continue where there are events.
      position = positionAfterGap(answer)
      continue
    }
    for (const event of answer.body.events) process.stdout.write(`${json === true ? JSON.stringify(event) : feedLine(event)}\n`)
    position = answer.body.next
  }
}

/** The answer to a request beyond the end of the feed contains the last sequence. */
async function lastSequence(ask: PatientAsk): Promise<number> {
  const answer = await ask(`/relay/events?after=${BEYOND_THE_END}&limit=1`)
  return answer.ok ? 0 : (answer.body.lastSequence ?? 0)
}

function positionAfterGap(answer: Refusal): number {
  const { oldestSequence, lastSequence: last, detail = 'The feed has a gap.' } = answer.body
  const position = oldestSequence === undefined ? last : Math.max(0, oldestSequence - 1)
  if (position === undefined) throw new Error(describeProblem(answer))
  process.stderr.write(`${detail}\n`)
  return position
}

async function followDeliveries(ask: AskRelay, { lines, endpoint, state, json }: TailOptions): Promise<never> {
  const id = endpoint === undefined ? null : (await findEndpoint(ask, endpoint)).id
  const query = new URLSearchParams({ ...(id === null ? {} : { endpoint: id }), ...(state === undefined ? {} : { state }) })
  const patient = createPatientAsk(ask)
  const followed = createFollowedDeliveries({ firstMax: lines })
  for (;;) {
    const answer = await patient<PageAnswer<'deliveries', DeliveryAnswer>>(`/relay/deliveries?limit=${LIST_MAX}&${query.toString()}`)
    if (!answer.ok) throw new Error(describeProblem(answer))
    const { changed, mayLackSome } = followed.look(answer.body)
    if (mayLackSome) process.stderr.write(MAY_LACK)
    for (const delivery of changed) {
      const line = json === true ? JSON.stringify(delivery) : `${new Date().toISOString().slice(11, 19)}  ${deliveryLine(delivery)}`
      process.stdout.write(`${line}\n`)
    }
    await pause(LOOK_EVERY_MS)
  }
}

const MAY_LACK = `More than ${LIST_MAX} deliveries are new since the last request: only the newest are shown. "parcel-relay deliveries" lists all.\n`

type PatientAsk = <Body>(path: string) => Promise<RelayAnswer<Body>>

/** Creates a function that repeats a request until the relay answers, and says once that it waits. A status below 500 is an answer. */
function createPatientAsk(ask: AskRelay): PatientAsk {
  let isSilent = false
  return async <Body>(path: string) => {
    for (;;) {
      try {
        const answer = await ask<Body>('GET', path)
        if (answer.status < 500) {
          if (isSilent) process.stderr.write('The relay answers again.\n')
          isSilent = false
          return answer
        }
        throw new Error(describeProblem(answer))
      } catch (error) {
        if (!isSilent) process.stderr.write(`${describeFailure(error)} Waiting for it.\n`)
        isSilent = true
        await pause(AGAIN_AFTER_MS)
      }
    }
  }
}

/** What changed in a list of deliveries since the previous list. */
interface Look<Row> {
  /** The deliveries that are new or have changed, the oldest first. */
  readonly changed: readonly Row[]
  /** Whether the relay may have new deliveries that the list lacks, because every delivery in the list is new and the list is not complete. */
  readonly mayLackSome: boolean
}

interface FollowedDeliveries {
  look<Row extends Standing>(list: { readonly deliveries: readonly Row[]; readonly next: string | null }): Look<Row>
}

interface Standing {
  readonly id: string
  readonly state: string
  readonly attemptCount: number
}

/** How many deliveries are remembered. This is more than a list has, because a delivery that newer deliveries pushed out may return to the list. */
const REMEMBERED_MAX = 5000

/** Compares each list of deliveries with the lists before. For the first list, returns only the newest `firstMax` deliveries as changed. */
export function createFollowedDeliveries({ firstMax }: { readonly firstMax: number }): FollowedDeliveries {
  const seen = new Map<string, string>()
  let isFirst = true
  return {
    look({ deliveries, next }) {
      let known = 0
      const changed = deliveries.toReversed().filter(({ id, state, attemptCount }) => {
        const standing = `${state} ${attemptCount}`
        const before = seen.get(id)
        if (before !== undefined) known += 1
        seen.delete(id)
        seen.set(id, standing)
        return before !== standing
      })
      for (const id of seen.keys()) {
        if (seen.size <= REMEMBERED_MAX) break
        seen.delete(id)
      }
      const shown = isFirst ? changed.slice(Math.max(0, changed.length - firstMax)) : changed
      const mayLackSome = !isFirst && known === 0 && next !== null
      isFirst = false
      return { changed: shown, mayLackSome }
    },
  }
}

function feedLine(event: FeedAnswer['events'][number]): string {
  const identifiers = 'identifiers' in event.parcel ? event.parcel.identifiers : []
  const who = identifiers.length === 0 ? `parcel ${event.parcel.id}` : identifiers.join(', ')
  const entry = 'entry' in event ? event.entry : null
  const what = [entry?.eventTimestamp, entry?.status, entry?.detailedStatus, entry?.location].map((text) => text ?? '')
  return plain([String(event.sequence), event.kind.padEnd(7), who, ...what].join('  ')).trimEnd()
}
