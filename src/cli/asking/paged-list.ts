import { type Command, InvalidArgumentError } from 'commander'
import { type AskRelay, describeProblem, listOf, textOf } from './ask-relay.ts'
import { describeParcelProblem } from './unknown.ts'

const PAGE_MAX = 500
const LIMIT_MAX = 100_000

export interface Listed {
  readonly items: readonly unknown[]
  /** The cursor of the first item after `items`; null: there are no more items. */
  readonly next: string | null
}

export async function listUpTo(
  ask: AskRelay,
  { path, name, limit, query }: { readonly path: string; readonly name: string; readonly limit: number; readonly query: Query },
): Promise<Listed> {
  const items: unknown[] = []
  for (let cursor: string | null = null; ; ) {
    const page = new URLSearchParams({ limit: String(Math.min(PAGE_MAX, limit - items.length)) })
    for (const [key, value] of Object.entries({ ...query, cursor: cursor ?? undefined })) if (value !== undefined) page.set(key, value)
    const answer = await ask('GET', `${path}?${page.toString()}`)
    if (answer.status === 404 && query.parcel !== undefined) throw new Error(await describeParcelProblem(ask, query.parcel, answer))
    if (answer.status !== 200) throw new Error(describeProblem(answer))
    items.push(...listOf(answer.body, name))
    cursor = textOf(answer.body, 'next')
    if (cursor === null || items.length >= limit) return { items, next: cursor }
  }
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

/** Writes to standard error if a list has more items, so that nobody takes the shown part for the whole. */
export function sayWhetherMore({ items, next }: Listed): void {
  if (next !== null) process.stderr.write(`There are more than these ${items.length}: raise --limit, or narrow the list down.\n`)
}
