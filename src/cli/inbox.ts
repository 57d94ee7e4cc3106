import { Command, Option } from 'commander'
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
import { EXIT, fail } from './exit-codes.ts'

interface InboxOptions extends ClientOptions {
  readonly state?: string
  readonly limit: string
  readonly reprocess?: boolean
}

/** `inbox`: lists, shows and reprocesses the pushes of a running relay. */
export function inboxCommand(): Command {
  const command = new Command('inbox')
    .description('list received pushes, show some by id, or reprocess those that were not recorded')
    .argument('[ids...]')
    .addOption(new Option('--state <state>', 'only those in this state').choices(['recorded', 'quarantined', 'expired', 'dismissed']))
    .option('--limit <count>', 'list at most this many, newest first', '100')
    .option('--reprocess', 'reprocess the pushes named, or all in --state')
    .action(async (ids: readonly string[], options: InboxOptions) => {
      if (options.reprocess === true && (ids.length === 0) === (options.state === undefined)) {
        process.stderr.write('inbox: --reprocess takes either ids or --state\n')
        process.exitCode = EXIT.usage
        return
      }
      const ask = await openRelay(options)
      if (options.reprocess === true) await reprocessAll(ask, ids.length > 0 ? ids : await idsIn(ask, options.state ?? ''), options)
      else if (ids.length > 0) for (const id of ids) await show(ask, id, options)
      else await list(ask, options)
    })
  return addRelayOptions(command)
}

async function list(ask: AskRelay, { state, limit, json }: InboxOptions): Promise<void> {
  const query = new URLSearchParams({ limit, ...(state === undefined ? {} : { state }) })
  const page = await ask('GET', `/relay/inbox?${query.toString()}`)
  if (page.status !== 200) return fail(describeProblem(page))
  if (json === true) process.stdout.write(`${JSON.stringify(page.body)}\n`)
  else for (const push of listOf(page.body, 'pushes')) process.stdout.write(`${describe(push)}\n`)
}

async function show(ask: AskRelay, id: string, { json }: InboxOptions): Promise<void> {
  const answer = await ask('GET', `/relay/inbox/${encodeURIComponent(id)}`)
  if (answer.status !== 200) return fail(`${id}: ${describeProblem(answer)}`)
  const body = textOf(answer.body, 'text') ?? textOf(answer.body, 'body') ?? 'the body is no longer kept'
  process.stdout.write(json === true ? `${JSON.stringify(answer.body)}\n` : `${describe(answer.body)}\n${body}\n`)
}

async function reprocessAll(ask: AskRelay, ids: readonly string[], { json }: InboxOptions): Promise<void> {
  for (const [at, id] of ids.entries()) {
    const answer = await ask('POST', `/relay/inbox/${encodeURIComponent(id)}/reprocess`)
    const reason = textOf(answer.body, 'reason')
    if (answer.status !== 200) fail(`${id}: ${describeProblem(answer)}`)
    else if (json === true) process.stdout.write(`${JSON.stringify({ id, outcome: memberOf(answer.body, 'outcome'), reason })}\n`)
    else
      process.stdout.write(
        `${id}: ${textOf(answer.body, 'outcome') ?? ''}${reason === null ? '' : ` (${reason})`}, ${at + 1} of ${ids.length}\n`,
      )
  }
}

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

function describe(push: unknown): string {
  const words = ['id', 'receivedAt', 'state', 'reason'].map((name) => textOf(push, name) ?? '')
  const bytes = memberOf(push, 'bodyBytes')
  return `${words.join('  ').trimEnd()}  ${typeof bytes === 'number' ? `${bytes} bytes` : 'body no longer kept'}`
}
