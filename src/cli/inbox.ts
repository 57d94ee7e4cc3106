import { Command, Option } from 'commander'
import { counted, countText } from '../domain/amounts.ts'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  listOf,
  memberOf,
  openRelay,
  textOf,
} from './asking/ask-relay.ts'
import { type StepEnd, takeSteps } from './asking/many-steps.ts'
import { addLimitOption, type LimitOptions, listUpTo, sayWhetherMore } from './asking/paged-list.ts'
import { EXIT, fail, failUsage } from './exit-codes.ts'
import { age } from './terminal/ages.ts'
import { type Cell, plain, shownBody, table } from './terminal/table.ts'

interface InboxOptions extends ClientOptions, LimitOptions {
  readonly state?: string
  readonly parcel?: string
  readonly reprocess?: boolean
  readonly refused?: boolean
}

/** `inbox`: lists, shows and reprocesses the pushes of a running relay. */
export function inboxCommand(): Command {
  const command = new Command('inbox')
    .description('list received pushes, the newest first, show some by id, or reprocess pushes that were not recorded')
    .argument('[ids...]')
    .addOption(new Option('--state <state>', 'only those in this state').choices(['recorded', 'quarantined', 'expired', 'dismissed']))
    .option('--parcel <identifier>', 'only those about this parcel')
    .option('--refused', 'list instead the last pushes whose signature did not match, and why')
    .option('--reprocess', 'reprocess the pushes named, or all in --state')
    .action(async (ids: readonly string[], options: InboxOptions) => {
      if (options.reprocess === true && (ids.length === 0) === (options.state === undefined)) {
        process.stderr.write('inbox: --reprocess takes either ids or --state\n')
        process.exitCode = EXIT.usage
        return
      }
      if (options.refused === true && [ids.length > 0, options.state, options.parcel, options.reprocess].some((given) => Boolean(given)))
        return failUsage('inbox: --refused takes no ids, --state, --parcel or --reprocess, because refused pushes are not kept')
      const ask = await openRelay(options)
      if (options.refused === true) await listRefused(ask, options)
      else if (options.reprocess === true) await reprocessAll(ask, ids.length > 0 ? ids : await idsIn(ask, options.state ?? ''), options)
      else if (ids.length > 0) for (const id of ids) await show(ask, id, options)
      else await list(ask, options)
    })
  return addRelayOptions(addLimitOption(command, 100))
}

async function list(ask: AskRelay, { state, parcel, limit, json }: InboxOptions): Promise<void> {
  const listed = await listUpTo(ask, { path: '/relay/inbox', name: 'pushes', limit, query: { state, parcel } })
  const { items, next } = listed
  if (json === true) return void process.stdout.write(`${JSON.stringify({ pushes: items, next })}\n`)
  if (items.length === 0) return void process.stdout.write(`${describeNone({ state, parcel })}\n`)
  process.stdout.write(table(['id', 'received', 'parcel', 'status', 'state', 'why', 'bytes'], items.map(rowOf)))
  sayWhetherMore(listed)
}

async function listRefused(ask: AskRelay, { limit, json }: InboxOptions): Promise<void> {
  const listed = await listUpTo(ask, { path: '/relay/refusals', name: 'refusals', limit, query: {} })
  const { items, next } = listed
  if (json === true) return void process.stdout.write(`${JSON.stringify({ refusals: items, next })}\n`)
  if (items.length === 0) return void process.stdout.write('No push was refused for its signature.\n')
  process.stdout.write(table(['received', 'from', 'bytes', 'why'], items.map(refusedRowOf)))
  sayWhetherMore(listed)
}

function refusedRowOf(refusal: unknown): readonly Cell[] {
  const bytes = memberOf(memberOf(refusal, 'body'), 'bytes')
  const causes = listOf(refusal, 'causes').map((cause) => textOf(cause, 'explanation') ?? '')
  return [
    `${age(textOf(refusal, 'at'))} ago`,
    textOf(refusal, 'address') ?? '',
    typeof bytes === 'number' ? countText(bytes) : 'not read',
    causes.length === 0 ? 'not known' : causes.join(' '),
  ]
}

function describeNone({ state, parcel }: { readonly state: string | undefined; readonly parcel: string | undefined }): string {
  const about = parcel === undefined ? '' : ` about ${parcel}`
  if (state !== undefined) return `No push${about} is ${state}.`
  return parcel === undefined ? 'The inbox is empty.' : `The inbox holds no push${about}.`
}

async function show(ask: AskRelay, id: string, { json }: InboxOptions): Promise<void> {
  const answer = await ask('GET', `/relay/inbox/${encodeURIComponent(id)}`)
  if (answer.status !== 200) return fail(`${id}: ${describeProblem(answer)}`)
  const body = textOf(answer.body, 'text') ?? textOf(answer.body, 'body') ?? 'the body is no longer kept'
  process.stdout.write(json === true ? `${JSON.stringify(answer.body)}\n` : `${describe(answer.body)}\n${shownBody(body)}\n`)
}

async function reprocessAll(ask: AskRelay, ids: readonly string[], { state, json }: InboxOptions): Promise<void> {
  if (ids.length === 0 && json !== true) process.stdout.write(`No push is ${state ?? 'named'}: there is nothing to reprocess.\n`)
  let left = 0
  const reprocess = async (id: string, at: number): Promise<StepEnd> => {
    const answer = await ask('POST', `/relay/inbox/${encodeURIComponent(id)}/reprocess`)
    if (answer.status !== 200) return { failure: `${id}: ${describeProblem(answer)}` }
    const [outcome, reason] = [textOf(answer.body, 'outcome') ?? '', textOf(answer.body, 'reason')]
    if (STILL_HELD.includes(outcome)) left += 1
    const because = reason === null ? '' : ` (${reason.replaceAll('_', ' ')})`
    const line = json === true ? JSON.stringify({ id, outcome, reason }) : `${id}: ${outcome}${because}, ${at + 1} of ${ids.length}`
    return { outcome, line }
  }
  await takeSteps(ids, reprocess, { step: 'reprocessing', unit: 'pushes', isForProgram: json === true })
  if (left > 0) fail(`${counted(left, 'push is', 'pushes are')} still not recorded.`)
}

/** The outcomes with which a push is still not recorded. */
const STILL_HELD = ['quarantined', 'expired']

/** Lists all pushes before the first is reprocessed, because that changes the list. In the order of arrival. */
async function idsIn(ask: AskRelay, state: string): Promise<readonly string[]> {
  const found: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = await ask('GET', `/relay/inbox?limit=500&state=${state}${cursor === '' ? '' : `&cursor=${cursor}`}`)
    if (page.status !== 200) throw new Error(describeProblem(page))
    for (const push of listOf(page.body, 'pushes')) found.push(textOf(push, 'id') ?? '')
    cursor = textOf(page.body, 'next')
  }
  return found.reverse()
}

function rowOf(push: unknown): readonly Cell[] {
  const state = textOf(push, 'state') ?? ''
  const bytes = memberOf(push, 'bodyBytes')
  const [parcel] = listOf(memberOf(push, 'parcel'), 'identifiers')
  return [
    textOf(push, 'id') ?? '',
    `${age(textOf(push, 'receivedAt'))} ago`,
    typeof parcel === 'string' ? parcel : '',
    textOf(push, 'status') ?? '',
    state === 'quarantined' ? { text: state, tone: 'warn' } : state,
    reasonOf(push),
    typeof bytes === 'number' ? countText(bytes) : 'gone',
  ]
}

/** Why a push is, or was, in quarantine, and what is wrong in its body. */
function reasonOf(push: unknown): string {
  const reason = textOf(push, 'reason')
  if (reason === null) return ''
  const place = memberOf(push, 'place')
  const member = textOf(place, 'member')
  const found = textOf(place, 'found') ?? ''
  const what = member === null ? found : memberOf(place, 'missing') === true ? `${member} is missing` : `${member} is ${found}`
  return what === '' ? reason.replaceAll('_', ' ') : `${reason.replaceAll('_', ' ')}: ${what}`
}

function describe(push: unknown): string {
  const [id, received, parcel, status, state, why] = rowOf(push).map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const words = [`push ${id}`, `received ${textOf(push, 'receivedAt') ?? ''} (${received})`, parcel, status, state, why]
  return plain(words.filter((word) => word !== '').join('  '))
}
