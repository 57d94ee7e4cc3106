import { Command } from 'commander'
import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import type { UpstreamAnswer } from '../../core/http/admin/health.routes.ts'
import type { PageAnswer } from '../../core/http/server/answer-schemas.ts'
import type { ListedParcelAnswer, RefreshedAnswer, WatchedAnswer, WatchListAnswer } from '../parcels/parcels.routes.ts'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  openRelay,
  print,
  typedIdentifier,
} from './asking/ask-relay.ts'
import { everyEndpoint, sendList } from './asking/lists.ts'
import { fail, failUsage } from './exit-codes.ts'
import { type StepEnd, takeSteps } from './terminal.ts'

interface WatchOptions extends ClientOptions {
  readonly file?: string
  readonly column?: string
}

/** `watch`: makes a running relay poll parcels. */
export function watchCommand(): Command {
  const command = new Command('watch')
    .description(
      'poll the parcels named, or those listed in a file, from now on. An endpoint is sent everything that happened since it began, with backfill also what is older (docs/endpoints.md). A number that belongs to a parcel the relay knows is joined with it at its first poll, and no event is sent twice.',
    )
    .argument('[identifiers...]')
    .option('--file <file>', 'NDJSON, or CSV if its name ends in .csv (see docs/api.md); reports bad lines by number')
    .option('--column <column>', 'the column of a CSV file to read: its name, or its number from 1')
    .action(async (identifiers: readonly string[], options: WatchOptions) => {
      if ((identifiers.length === 0) === (options.file === undefined) || (options.column !== undefined && options.file === undefined))
        return failUsage('watch: name parcels, or use --file; --column belongs to a file')
      const ask = await openRelay(options)
      if (options.json !== true) process.stdout.write(await noteBegan(ask))
      if (options.file === undefined) await watchNamed(ask, identifiers, options)
      else await watchFile(ask, options.file, options)
    })
  return addRelayOptions(command)
}

async function watchNamed(ask: AskRelay, identifiers: readonly string[], { json }: WatchOptions): Promise<void> {
  for (const identifier of identifiers) {
    const answer = await ask<WatchedAnswer>('PUT', `/relay/parcels/${typedIdentifier(identifier)}/watch`)
    if (!answer.ok) fail(`${identifier}: ${describeProblem(answer)}`)
    else if (json === true) process.stdout.write(`${JSON.stringify(answer.body)}\n`)
    else process.stdout.write(`${answer.body.identifier}: watched${await describeWatched(ask, answer.body)}\n`)
  }
  if (json !== true) process.stdout.write(await notePause(ask))
}

/** Says whether the relay knew the number. A new number may belong to a parcel that the relay knows, but only its first poll shows that. */
async function describeWatched(ask: AskRelay, { identifier, created }: WatchedAnswer): Promise<string> {
  if (created) return ', new to the relay'
  // Ask for a list, because it comes without the history. Its first parcel is the one with exactly this identifier.
  const found = await ask<PageAnswer<'parcels', ListedParcelAnswer>>('GET', `/relay/parcels?query=${identifier}&limit=1`)
  const identifiers = found.ok ? (found.body.parcels[0]?.identifiers ?? []) : []
  const [other, ...more] = identifiers.filter((one) => one !== identifier)
  if (other === undefined) return ''
  return `, the parcel ${other}${more.length === 0 ? '' : ` and ${counted(more.length, 'more identifier', 'more identifiers')}`}`
}

/** Says that first polls wait because calls to the carrier pause; empty: they do not. */
export async function notePause(ask: AskRelay): Promise<string> {
  const upstream = await ask<UpstreamAnswer>('GET', '/relay/upstream')
  if (!upstream.ok) return ''
  const { credentials, refusal, breaker } = upstream.body
  const [why, seconds] =
    credentials === 'refused'
      ? ['The carrier refuses our password', refusal?.retrySeconds ?? 0]
      : [`The carrier has answered no question${breaker.since === null ? '' : ` since ${breaker.since}`}`, breaker.restSeconds]
  if (credentials !== 'refused' && breaker.state === 'closed') return ''
  const earliest = seconds === 0 ? '' : `, in ${spanText(seconds * 1000)} at the earliest`
  return `${why}, so calls pause: the first polls are made when it answers again${earliest}.\n`
}

/** Pushes contain tracking ids, but lists contain tracking numbers. So all numbers of a list may be new although the relay knows their parcels. */
const firstPollsOf = (pause: string): string =>
  `A number counts as new until its first poll${pause === '' ? ', a minute or two from now' : ''}. The relay may know its parcel by another identifier already. After the poll, see all of them with: parcel-relay parcels NUMBER\n${pause}`

async function watchFile(ask: AskRelay, file: string, options: WatchOptions): Promise<void> {
  const total = { lines: 0, watched: 0, created: 0, failed: 0, erased: 0 }
  const errors: { readonly line: number; readonly reason: string }[] = []
  await sendList({ file, column: options.column, step: 'watching' }, async ({ type, text, query, lines, lineOf }) => {
    const answer = await ask<WatchListAnswer>('POST', `/relay/parcels/watch${query.length === 0 ? '' : `?${query.join('&')}`}`, {
      type,
      text,
    })
    if (!answer.ok) throw new Error(`after ${counted(total.lines, 'line', 'lines')}: ${describeProblem(answer)}`)
    for (const name of ['watched', 'created', 'failed', 'erased'] as const) total[name] += answer.body[name]
    errors.push(...answer.body.errors.map(({ line, reason }) => ({ line: lineOf(line), reason })))
    total.lines += lines
  })
  const pause = options.json === true ? '' : await notePause(ask)
  print(
    options,
    { ...total, errors },
    `${countText(total.watched)} watched (${countText(total.created)} new to the relay), ${countText(total.failed)} bad of ${counted(total.watched + total.failed, 'line', 'lines')}\n${total.created > 0 ? firstPollsOf(pause) : pause}`,
  )
  if (total.failed > 0) fail(errors.map(({ line, reason }) => `${file}:${line} ${reason}`).join('\n'))
}

const NAMED_MAX = 10

/** Says which endpoints are sent what the first polls of new parcels find, and since when; empty: there are no endpoints. */
export async function noteBegan(ask: AskRelay): Promise<string> {
  const endpoints = await everyEndpoint(ask)
  if (endpoints.length === 0) return ''
  const lines = endpoints.slice(0, NAMED_MAX).map(({ name, state, backfill, beganAt }) => {
    const since = backfill ? 'at any time (backfill)' : `since ${beganAt}`
    return state === 'disabled'
      ? `  ${name} (disabled): what happened ${since}, once it is enabled\n`
      : `  ${name}: what happened ${since}\n`
  })
  const more = endpoints.length - lines.length
  return `Endpoints are sent what the first polls find:\n${lines.join('')}${more === 0 ? '' : `  and ${more} more: parcel-relay endpoints\n`}`
}

/** `refresh`: makes a running relay ask the carrier about parcels now. */
export function refreshCommand(): Command {
  const command = new Command('refresh')
    .description(
      'ask the carrier about parcels now, in every language; also learns which parcel a tracking number belongs to. What it finds is sent to each endpoint that had begun when it happened (docs/endpoints.md)',
    )
    .argument('[identifiers...]')
    .option('--all', 'refresh every watched parcel, most overdue first; each costs calls from the budget')
    .action(async (identifiers: readonly string[], options: ClientOptions & { readonly all?: boolean }) => {
      if ((identifiers.length === 0) !== (options.all === true)) return failUsage('refresh: name parcels, or use --all')
      const ask = await openRelay(options)
      const named = options.all === true ? await everyParcel(ask) : identifiers
      let unknown = 0
      const refresh = async (identifier: string, at: number): Promise<StepEnd> => {
        const answer = await ask<RefreshedAnswer>('POST', `/relay/parcels/${typedIdentifier(identifier)}/refresh`)
        if (!answer.ok) return { failure: `${identifier}: ${describeProblem(answer)}` }
        const { outcome } = answer.body
        unknown += outcome === 'unknown' ? 1 : 0
        const line = options.json === true ? JSON.stringify(answer.body) : `${identifier}: ${outcome} (${at + 1} of ${named.length})`
        return { outcome, line }
      }
      await takeSteps(named, refresh, { step: 'refreshing', unit: 'parcels', isForProgram: options.json === true })
      if (options.json !== true) process.stdout.write(`${aboutUnknown(unknown)}`)
    })
  return addRelayOptions(command)
}

function aboutUnknown(count: number): string {
  return count === 0
    ? ''
    : `${counted(count, 'parcel is', 'parcels are')} unknown: the carrier knows none of the identifiers that the relay has. If you have the tracking number, refresh by that.\n`
}

/** Lists all parcels before the first refresh, because a refresh changes the order of the list. */
async function everyParcel(ask: AskRelay): Promise<readonly string[]> {
  const found: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const path: string = `/relay/parcels?limit=500${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    const page = await ask<PageAnswer<'parcels', ListedParcelAnswer>>('GET', path)
    if (!page.ok) throw new Error(describeProblem(page))
    found.push(...page.body.parcels.flatMap(({ identifiers }) => identifiers.slice(0, 1)))
    cursor = page.body.next
    if (cursor?.startsWith('stopped.') === true) cursor = null
  }
  return found
}
