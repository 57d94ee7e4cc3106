import { type Command, InvalidArgumentError } from 'commander'
import { type AskRelay, type ClientOptions, describeParcelProblem, describeProblem } from './ask-relay.ts'

const PAGE_MAX = 500
const LIMIT_MAX = 100_000

interface AskedList {
  readonly path: string
  /** The member of the answer that holds the items. */
  readonly name: string
  readonly limit: number
  readonly query: Query
}

interface Listed<Item> {
  readonly items: readonly Item[]
  /** The cursor of the first item after `items`; null: there are no more items. */
  readonly next: string | null
}

interface Page<Item> {
  readonly next: string | null
  readonly [name: string]: readonly Item[] | string | null
}

export async function listUpTo<Item>(ask: AskRelay, { path, name, limit, query }: AskedList): Promise<Listed<Item>> {
  const items: Item[] = []
  for (let cursor: string | null = null; ; ) {
    const asked = new URLSearchParams({ limit: String(Math.min(PAGE_MAX, limit - items.length)) })
    for (const [key, value] of Object.entries({ ...query, cursor: cursor ?? undefined })) if (value !== undefined) asked.set(key, value)
    const answer = await ask<Page<Item>>('GET', `${path}?${asked.toString()}`)
    if (!answer.ok && answer.status === 404 && query.parcel !== undefined)
      throw new Error(await describeParcelProblem(ask, query.parcel, answer))
    if (!answer.ok) throw new Error(describeProblem(answer))
    const page = answer.body[name]
    if (typeof page === 'object' && page !== null) items.push(...page)
    cursor = answer.body.next
    if (cursor === null || items.length >= limit) return { items, next: cursor }
  }
}

/** Prints a list, and says on standard error whether there are more items, so that nobody takes the shown part for the whole. */
export async function printList<Item>(
  ask: AskRelay,
  asked: AskedList,
  { json }: ClientOptions,
  present: (items: readonly Item[]) => string,
  noteOn: (items: readonly Item[]) => string = () => '',
): Promise<void> {
  const { items, next } = await listUpTo<Item>(ask, asked)
  if (json === true) return void process.stdout.write(`${JSON.stringify({ [asked.name]: items, next })}\n`)
  process.stdout.write(present(items))
  const more = next === null ? '' : `There are more than these ${items.length}: raise --limit, or narrow the list down.\n`
  if (noteOn(items) + more !== '') process.stderr.write(noteOn(items) + more)
}

/** The query parameters of a list; undefined: not sent. */
export type Query = Readonly<Record<string, string | undefined>>

export interface LimitOptions {
  readonly limit: number
}

export function addLimitOption(command: Command, count = 50): Command {
  return command.option('--limit <count>', 'list at most this many', readLimit, count)
}

function readLimit(text: string): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > LIMIT_MAX) throw new InvalidArgumentError(`It must be a whole number from 1 to ${LIMIT_MAX}.`)
  return limit
}
