import { counted, countText } from '../../../core/domain/amounts.ts'
import { followJob } from '../../../upkeep/jobs/follow-job.ts'
import type { JobAnswer } from '../../../upkeep/jobs/jobs.routes.ts'
import type { ListedPushAnswer } from '../../api/inbox.routes.ts'
import type { RefreshedAnswer } from '../../api/parcels.routes.ts'
import { type AskRelay, describeProblem, order } from '../asking/ask-relay.ts'
import { listUpTo } from '../asking/paged-list.ts'
import { createProgressLine, type StepEnd, takeSteps } from '../asking/progress-line.ts'
import { fail } from '../exit-codes.ts'

interface Shown {
  readonly json: boolean
}

/** Asks the carrier about each parcel that selected pushes name. From now on the relay polls new parcels that the carrier knows. */
export async function refreshNamed(ask: AskRelay, selection: PushSelection, { json }: Shown): Promise<void> {
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
export async function dismissAll(ask: AskRelay, selection: PushSelection, { json, yes }: Shown & { readonly yes: boolean }): Promise<void> {
  const named = await findNamedParcels(ask, selection)
  const unknown = named.parcels.filter(({ knownAs }) => knownAs === null).length
  const counts = { pushes: named.pushes, parcels: named.parcels.length, unknownParcels: unknown, unreadable: named.unreadable }
  const print = (text: string, dismissed: number) =>
    void process.stdout.write(json ? `${JSON.stringify({ ...counts, dismissed })}\n` : `${text}\n`)
  if (named.pushes === 0) return print('No such push is in quarantine: there is nothing to dismiss.', 0)
  if (!json) process.stdout.write(`${describe(named, unknown)}\n`)
  if (!yes) return print('Nothing was dismissed. Say --yes to dismiss them.', 0)
  const query = selection.reason === undefined ? '' : `&reason=${selection.reason}`
  const started = await order<{ readonly count: number } | JobAnswer>(ask, 'POST', `/relay/inbox/dismiss?state=quarantined${query}`)
  const job = 'count' in started ? null : await followJob(ask, started.id, { whole: ['dismissing', 'pushes'] })
  const done = 'count' in started ? started.count : (job?.progress.done ?? 0)
  print(`${counted(done, 'push is', 'pushes are')} dismissed.`, done)
  if (job !== null && job.state !== 'done') fail(`The job ended early: ${job.failure ?? job.state}.`)
}

function describe(named: NamedParcels, unknown: number): string {
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
export async function listPushes(ask: AskRelay, { state, reason }: PushSelection): Promise<readonly ListedPushAnswer[]> {
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
