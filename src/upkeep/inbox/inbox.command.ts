import { Command, Option } from 'commander'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  openRelay,
  order,
  print,
} from '../../console/cli/asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, listUpTo, printList } from '../../console/cli/asking/lists.ts'
import { fail, failUsage } from '../../console/cli/exit-codes.ts'
import { age, type Cell, createProgressLine, plain, type StepEnd, shownBody, table, takeSteps } from '../../console/cli/terminal.ts'
import type { OverviewAnswer } from '../../console/overview/overview.routes.ts'
import type { RefreshedAnswer } from '../../console/parcels/parcels.routes.ts'
import { counted, countText, latenessText } from '../../core/domain/amounts.ts'
import { QUARANTINE_REASONS } from '../../core/domain/history/observation.ts'
import { reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import { followJob } from '../jobs/follow-job.ts'
import type { JobAnswer } from '../jobs/jobs.routes.ts'
import type { RefusalAnswer } from '../refusals/refusals.routes.ts'
import type { ListedPushAnswer, PushAnswer, ReprocessedAnswer } from './inbox.routes.ts'

interface InboxOptions extends ClientOptions, LimitOptions {
  readonly state?: string
  readonly parcel?: string
  readonly reason?: string
  readonly reprocess?: boolean
  readonly refused?: boolean
  readonly refresh?: boolean
  readonly dismiss?: boolean
  readonly yes?: boolean
}

/** `inbox`: lists and shows the pushes of a running relay, and settles the ones that were not recorded. */
export function inboxCommand(): Command {
  const command = new Command('inbox')
    .description(
      'list received pushes, the newest first, show some by id, or settle pushes that were not recorded. A push that comes again with the same bytes is one row',
    )
    .argument('[ids...]')
    .addOption(new Option('--state <state>', 'only those in this state').choices(['recorded', 'quarantined', 'expired', 'dismissed']))
    .option('--parcel <identifier>', 'only those about this parcel')
    .option('--refused', 'list instead the last pushes whose signature did not match, and why; says how many others were refused')
    .addOption(new Option('--reason <reason>', 'only those that are, or were, in quarantine for this reason').choices(QUARANTINE_REASONS))
    .option('--reprocess', 'reprocess the pushes named, or all in --state')
    .option('--refresh', 'ask the carrier about each parcel named by a push in --state (quarantined); costs calls from the budget')
    .option('--dismiss', 'dismiss all pushes in --state quarantined; without --yes only says which parcels the relay does not know')
    .option('--yes', 'dismiss; without it nothing is changed')
    .action(async (ids: readonly string[], options: InboxOptions) => {
      const mistake = mistakeIn(ids, options)
      if (mistake !== null) return failUsage(`inbox: ${mistake}`)
      const ask = await openRelay(options)
      if (options.refused === true) return await listRefused(ask, options)
      const { state = 'quarantined', reason, json = false, yes = false } = options
      if (options.refresh === true) await refreshNamed(ask, { state, reason }, { json })
      else if (options.dismiss === true) await dismissAll(ask, { state, reason }, { json, yes })
      else if (options.reprocess === true) await reprocessAll(ask, ids.length > 0 ? ids : await idsIn(ask, { state, reason }), options)
      else if (ids.length > 0) for (const id of ids) await show(ask, id, options)
      else await list(ask, options)
    })
  return addRelayOptions(addLimitOption(command, 100))
}

/** Returns why these arguments cannot be combined; null: they can. */
function mistakeIn(ids: readonly string[], { state, parcel, reason, reprocess, refresh, dismiss, refused }: InboxOptions): string | null {
  if (refused === true && [ids.length > 0, state, parcel, reason, reprocess, refresh, dismiss].some((given) => Boolean(given)))
    return '--refused takes no ids, and no option that selects or changes pushes, because refused pushes are not kept'
  if ([reprocess, refresh, dismiss].filter((one) => one === true).length > 1) return 'use one of --reprocess, --refresh and --dismiss'
  if (reprocess === true && (ids.length === 0) === (state === undefined)) return '--reprocess takes either ids or --state'
  if (refresh === true && (ids.length > 0 || state === 'recorded')) return '--refresh takes a --state other than recorded, and no ids'
  if (dismiss === true && (ids.length > 0 || state !== 'quarantined')) return '--dismiss takes --state quarantined, and no ids'
  return null
}

async function list(ask: AskRelay, { state, parcel, reason, limit, ...options }: InboxOptions): Promise<void> {
  const asked = { path: '/relay/inbox', name: 'pushes', limit, query: { state, parcel, reason } }
  await printList<ListedPushAnswer>(ask, asked, options, (pushes) =>
    pushes.length === 0
      ? `${describeNone({ state, parcel })}\n`
      : table(['id', 'received', 'parcel', 'status', 'state', 'why', 'bytes'], pushes.map(rowOf)),
  )
}

const LISTS_FEW = 'The relay examines and lists at most one refused push per second; parcel-relay status counts them all.\n'

async function listRefused(ask: AskRelay, { limit, ...options }: InboxOptions): Promise<void> {
  const others = options.json === true ? '' : await otherRefusals(ask)
  await printList<RefusalAnswer>(ask, { path: '/relay/refusals', name: 'refusals', limit, query: {} }, options, (refusals) =>
    refusals.length === 0
      ? `No push was refused for its signature.\n${others}`
      : `${table(['received', 'from', 'bytes', 'why'], refusals.map(refusedRowOf))}${others}${LISTS_FEW}`,
  )
}

/** Pushes that were refused with 503 are not in the list, and whoever looks for refused pushes must not think that there are none. */
async function otherRefusals(ask: AskRelay): Promise<string> {
  const answer = await ask<OverviewAnswer>('GET', '/relay/overview')
  const spells = answer.ok ? answer.body.pushes.refused : []
  const count = spells.reduce((sum, { cause, count: more }) => sum + (UNAVAILABLE.includes(cause) ? more : 0), 0)
  if (count === 0) return ''
  const times = counted(count, 'more request was', 'more requests were')
  return `In the last day ${times} answered with 503 and not kept: parcel-relay status says when, and whether they have come again.\n`
}

/** The causes of an answer 503. */
const UNAVAILABLE = ['not_stored', 'overload']

function refusedRowOf({ at, address, body, causes }: RefusalAnswer): readonly Cell[] {
  const why = causes.map(({ explanation }) => explanation)
  return [`${age(at)} ago`, address, body === null ? 'not read' : countText(body.bytes), why.length === 0 ? 'not known' : why.join(' ')]
}

function describeNone({ state, parcel }: { readonly state: string | undefined; readonly parcel: string | undefined }): string {
  const about = parcel === undefined ? '' : ` about ${parcel}`
  if (state !== undefined) return `No push${about} is ${state}.`
  return parcel === undefined ? 'The inbox is empty.' : `The inbox holds no push${about}.`
}

async function show(ask: AskRelay, id: string, options: InboxOptions): Promise<void> {
  const answer = await ask<PushAnswer>('GET', `/relay/inbox/${encodeURIComponent(id)}`)
  if (!answer.ok) return fail(`${id}: ${describeProblem(answer)}`)
  const { text, body } = answer.body
  print(options, answer.body, `${describe(answer.body)}\n${shownBody(text ?? body ?? 'the body is no longer kept')}\n`)
}

async function reprocessAll(ask: AskRelay, ids: readonly string[], { state, json }: InboxOptions): Promise<void> {
  if (ids.length === 0 && json !== true) process.stdout.write(`No push is ${state ?? 'named'}: there is nothing to reprocess.\n`)
  let left = 0
  const reprocess = async (id: string, at: number): Promise<StepEnd> => {
    const answer = await ask<ReprocessedAnswer>('POST', `/relay/inbox/${encodeURIComponent(id)}/reprocess`)
    if (!answer.ok) return { failure: `${id}: ${describeProblem(answer)}` }
    const { outcome, reason } = answer.body
    if (STILL_HELD.includes(outcome)) left += 1
    const said = `${outcome}${reason === null ? '' : ` (${reasonText(reason)})`}`
    const line = json === true ? JSON.stringify({ id, outcome, reason }) : `${id}: ${said}, ${at + 1} of ${ids.length}`
    return { outcome: said, line }
  }
  await takeSteps(ids, reprocess, { step: 'reprocessing', unit: 'pushes', isForProgram: json === true, isSummed: true })
  if (left > 0) fail(`${counted(left, 'push is', 'pushes are')} still not recorded.`)
}

/** The outcomes of reprocessing after which a push is still not recorded. */
const STILL_HELD = ['quarantined', 'expired']

async function idsIn(ask: AskRelay, selection: Parameters<typeof listPushes>[1]): Promise<readonly string[]> {
  return (await listPushes(ask, selection)).map(({ id }) => id)
}

function rowOf(push: ListedPushAnswer): readonly Cell[] {
  const { id, receivedAt, parcel, status, state, bodyBytes } = push
  return [
    id,
    `${age(receivedAt)} ago`,
    parcel.identifiers[0] ?? '',
    status ?? '',
    state === 'quarantined' ? { text: state, tone: 'warn' } : state,
    reasonOf(push),
    bodyBytes === null ? 'gone' : countText(bodyBytes),
  ]
}

/** Says why a push is, or was, in quarantine, and what is wrong in its body; empty: it never was in quarantine. */
function reasonOf({ reason, place }: ListedPushAnswer): string {
  if (reason === null) return ''
  const what = place === null ? '' : faultAt(place)
  return what === '' ? reasonText(reason) : `${reasonText(reason)} (${what})`
}

/** Names what is wrong and, if a member is missing, the unknown members there. If the carrier has renamed the member, its new name is among them. */
function faultAt({ member, found, missing, unknown }: NonNullable<ListedPushAnswer['place']>): string {
  if (member === null) return found
  if (!missing) return `${member}: ${found}`
  const strange = unknown.length === 0 ? '' : `, and ${unknown.join(', ')} ${unknown.length === 1 ? 'is' : 'are'} unknown`
  return `${member} is missing${strange}`
}

function describe(push: PushAnswer): string {
  const [id, received, parcel, status, state, why] = rowOf(push).map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const { eventAt, receivedAt } = push
  const late = eventAt === null ? '' : `${latenessText(Date.parse(eventAt), Date.parse(receivedAt))} at ${eventAt}`
  const words = [`push ${id}`, `received ${receivedAt} (${received})`, late, parcel, status, state, why]
  return plain(words.filter((word) => word !== '').join('  '))
}

interface Shown {
  readonly json: boolean
}

/** Asks the carrier about each parcel that selected pushes name. From now on the relay polls new parcels that the carrier knows. */
async function refreshNamed(ask: AskRelay, selection: PushSelection, { json }: Shown): Promise<void> {
  const named = await findNamedParcels(ask, selection)
  const { parcels } = named
  let added = 0
  const refresh = async (parcel: NamedParcel, at: number): Promise<StepEnd> => {
    const end = await refreshOne(ask, parcel)
    if ('failure' in end) return end
    if (end.outcome === 'new') added += 1
    const [identifier = ''] = parcel.identifiers
    const line = json
      ? JSON.stringify({ identifiers: parcel.identifiers, outcome: end.outcome.replaceAll(' ', '_') })
      : `${identifier}: ${end.outcome}, ${at + 1} of ${parcels.length}`
    return { outcome: end.outcome, line }
  }
  await takeSteps(parcels, refresh, { step: 'refreshing', unit: 'parcels', isForProgram: json, isSummed: true })
  const said = `${counted(named.pushes, 'push names', 'pushes name')} ${counted(parcels.length, 'parcel', 'parcels')}; ${counted(added, 'was', 'were')} new to the relay.`
  ;(json ? process.stderr : process.stdout).write(`${said}${unreadableIn(named)}\n`)
}

/** Asks the carrier about one parcel. If the carrier knows it, the outcome says whether the relay already knew it: `known` or `new`. */
async function refreshOne(ask: AskRelay, { identifiers, knownAs }: NamedParcel): Promise<{ outcome: string } | { failure: string }> {
  let isErased = false
  for (const identifier of knownAs === null ? identifiers : [knownAs]) {
    const answer = await ask<RefreshedAnswer>('POST', `/relay/parcels/${encodeURIComponent(identifier)}/refresh`)
    if (!answer.ok && answer.body.type?.endsWith(':erased') === true) isErased = true
    else if (!answer.ok) return { failure: `${identifier}: ${describeProblem(answer)}` }
    else if (answer.body.outcome === 'recorded') return { outcome: knownAs === null ? 'new' : 'known' }
  }
  return { outcome: isErased ? 'erased' : 'unknown to the carrier' }
}

/** Says how many parcels the selected pushes name, and how many of them the relay does not know. With `yes`, then dismisses the pushes. */
async function dismissAll(ask: AskRelay, selection: PushSelection, { json, yes }: Shown & { readonly yes: boolean }): Promise<void> {
  const named = await findNamedParcels(ask, selection)
  const unknown = named.parcels.filter(({ knownAs }) => knownAs === null).length
  const counts = { pushes: named.pushes, parcels: named.parcels.length, unknownParcels: unknown, unreadable: named.unreadable }
  const print = (text: string, dismissed: number) =>
    void process.stdout.write(json ? `${JSON.stringify({ ...counts, dismissed })}\n` : `${text}\n`)
  if (named.pushes === 0) return print('No such push is in quarantine: there is nothing to dismiss.', 0)
  if (!json) process.stdout.write(`${describeNamed(named, unknown)}\n`)
  if (!yes) return print('Nothing was dismissed. Say --yes to dismiss them.', 0)
  const query = selection.reason === undefined ? '' : `&reason=${selection.reason}`
  const started = await order<{ readonly count: number } | JobAnswer>(ask, 'POST', `/relay/inbox/dismiss?state=quarantined${query}`)
  const job = 'count' in started ? null : await followJob(ask, started.id, { whole: ['dismissing', 'pushes'] })
  const done = 'count' in started ? started.count : (job?.progress.done ?? 0)
  print(`${counted(done, 'push is', 'pushes are')} dismissed.`, done)
  if (job !== null && job.state !== 'done') fail(`The job ended early: ${job.failure ?? job.state}.`)
}

function describeNamed(named: NamedParcels, unknown: number): string {
  const { pushes, parcels } = named
  const first = `${counted(pushes, 'push names', 'pushes name')} ${counted(parcels.length, 'parcel', 'parcels')}.`
  const lost =
    unknown === 0
      ? ' The relay knows all of them.'
      : ` The relay does not know ${countText(unknown)} of them, so it never polls them: first ask the carrier, with inbox --refresh.`
  return `${first}${parcels.length === 0 ? '' : lost}${unreadableIn(named)}`
}

function unreadableIn({ unreadable }: NamedParcels): string {
  return unreadable === 0 ? '' : ` ${counted(unreadable, 'push names', 'pushes name')} no parcel that can be read.`
}

/** Selects pushes of the inbox. `reason`: why they were quarantined; undefined: for any reason. */
interface PushSelection {
  readonly state: string
  readonly reason: string | undefined
}

/** A parcel that selected pushes name in their bodies. */
interface NamedParcel {
  readonly identifiers: readonly string[]
  /** An identifier of this parcel that the relay knows; null: the relay does not know the parcel. */
  readonly knownAs: string | null
}

interface NamedParcels {
  readonly parcels: readonly NamedParcel[]
  readonly pushes: number
  /** How many pushes contain no identifier that the relay can read. */
  readonly unreadable: number
}

/** Lists all selected pushes in the order of arrival. */
async function listPushes(ask: AskRelay, { state, reason }: PushSelection): Promise<readonly ListedPushAnswer[]> {
  const asked = { path: '/relay/inbox', name: 'pushes', limit: Infinity, query: { state, reason } }
  return (await listUpTo<ListedPushAnswer>(ask, asked)).items.toReversed()
}

async function findNamedParcels(ask: AskRelay, selection: PushSelection): Promise<NamedParcels> {
  const pushes = await listPushes(ask, selection)
  const named = new Map<string, ReadonlySet<string>>()
  let unreadable = 0
  for (const push of pushes) {
    const identifiers = await identifiersOf(ask, push)
    if (identifiers.length === 0) unreadable += 1
    // Pushes that share an identifier are about the same parcel.
    const together = new Set(identifiers.flatMap((one) => [...(named.get(one) ?? [one])]))
    for (const one of together) named.set(one, together)
  }
  const groups = [...new Set(named.values())]
  const progress = createProgressLine(process.stderr)
  const parcels: NamedParcel[] = []
  for (const [at, group] of groups.entries()) {
    const identifiers = [...group]
    parcels.push({ identifiers, knownAs: await findKnown(ask, identifiers) })
    progress.show('looking up', at + 1, groups.length, 'parcels')
  }
  progress.end()
  return { parcels, pushes: pushes.length, unreadable }
}

async function identifiersOf(ask: AskRelay, { id, parcel, place, bodyBytes }: ListedPushAnswer): Promise<readonly string[]> {
  // The list shows no identifiers of a push with a long body, so ask for that push by its id.
  if (parcel.identifiers.length > 0 || place !== null || bodyBytes === null) return parcel.identifiers
  const push = await ask<ListedPushAnswer>('GET', `/relay/inbox/${id}`)
  return push.ok ? push.body.parcel.identifiers : []
}

async function findKnown(ask: AskRelay, identifiers: readonly string[]): Promise<string | null> {
  for (const identifier of identifiers) {
    const answer = await ask('GET', `/relay/parcels/${encodeURIComponent(identifier)}`)
    if (answer.ok) return identifier
    if (answer.status !== 404 && answer.status !== 410) throw new Error(`${identifier}: ${describeProblem(answer)}`)
  }
  return null
}
