import { createReadStream, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { type Command, InvalidArgumentError } from 'commander'
import { createListDecoder, createWatchLineReader } from '../../../core/domain/admin/parcel-list.ts'
import { suggestName } from '../../../core/domain/text.ts'
import type { EndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import type { PageAnswer } from '../../../core/http/server/answer-schemas.ts'
import { createProgressLine, type Screen } from '../terminal.ts'
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
  present: (items: readonly Item[]) => string | Promise<string>,
  noteOn: (items: readonly Item[]) => string = () => '',
): Promise<void> {
  const { items, next } = await listUpTo<Item>(ask, asked)
  if (json === true) return void process.stdout.write(`${JSON.stringify({ [asked.name]: items, next })}\n`)
  process.stdout.write(await present(items))
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

interface ListPart {
  readonly type: string
  readonly text: string
  /** Query parameters, each as `name=value`. */
  readonly query: readonly string[]
  /** The number of lines of the file in this part, without a repeated header. */
  readonly lines: number
  /** Converts the number of a line in this part to its number in the file. Both count from 1. */
  readonly lineOf: (line: number) => number
}

interface ListToSend {
  readonly file: string
  /** The column of a CSV file to read; undefined: the relay looks for a column with a usual name. */
  readonly column: string | undefined
  /** Names the work for the progress bar. */
  readonly step: string
}

/** Parts are small, so that progress shows between them. */
const LINES_AT_ONCE = 5000

/**
 * Sends a file of identifiers in parts, one after the other. If the first line of a CSV file names the columns, every part begins with that line. If
 * there may be more than one part, progress is shown.
 */
export async function sendList(
  { file, column, step }: ListToSend,
  send: (part: ListPart) => Promise<void>,
  screen: Screen = process.stderr,
): Promise<void> {
  const type = file.toLowerCase().endsWith('.csv') ? 'text/csv' : 'application/x-ndjson'
  const query = column === undefined ? [] : [`column=${encodeURIComponent(column)}`]
  let header = ''
  let namesColumns = false
  let sent = 0
  const total = await countLines(file)
  const progress = total === null || total > LINES_AT_ONCE ? createProgressLine(screen) : null
  const show = () => progress?.show(step, sent, total ?? 0, 'lines')
  const sendPart = async (lines: readonly string[]) => {
    const repeated = namesColumns && sent > 0
    const before = sent - (repeated ? 1 : 0)
    const text = (repeated ? [header, ...lines] : lines).join('\n')
    show()
    await send({ type, text, query, lines: lines.length, lineOf: (line) => before + line }).catch((error: unknown) => {
      progress?.end()
      throw error
    })
    sent += lines.length
    show()
  }
  let part: string[] = []
  for await (const line of linesOf(file)) {
    if (header === '') {
      header = line
      namesColumns = type === 'text/csv' && createWatchLineReader('csv', column ?? null)(line).kind === 'nothing'
    }
    part.push(line)
    if (part.length > LINES_AT_ONCE) {
      await sendPart(part.slice(0, LINES_AT_ONCE))
      part = part.slice(LINES_AT_ONCE)
    }
  }
  if (part.length > 0) await sendPart(part)
  progress?.end()
}

/** Null: the file is a pipe, for example, and counting its lines would use them up. */
async function countLines(file: string): Promise<number | null> {
  if (!statSync(file).isFile()) return null
  let count = 0
  for await (const _ of linesOf(file)) count += 1
  return count
}

function linesOf(file: string) {
  return createInterface({ input: Readable.from(decoded(file)), crlfDelay: Infinity })
}

/** A spreadsheet may have saved the list as UTF-16. */
async function* decoded(file: string): AsyncGenerator<string> {
  const decoder = createListDecoder()
  for await (const chunk of createReadStream(file)) if (chunk instanceof Uint8Array) yield decoder.write(chunk)
  yield decoder.end()
}

/** Finds an endpoint by its name or, if no endpoint has this name, by its id. If there is none, throws an error that suggests a similar name. */
export async function findEndpoint(ask: AskRelay, nameOrId: string): Promise<EndpointAnswer> {
  const named = await ask<PageAnswer<'endpoints', EndpointAnswer>>('GET', `/relay/endpoints?limit=1&name=${encodeURIComponent(nameOrId)}`)
  if (!named.ok) throw new Error(describeProblem(named))
  const [first] = named.body.endpoints
  if (first !== undefined) return first
  if (/^\d{1,15}$/.test(nameOrId)) {
    const byId = await ask<EndpointAnswer>('GET', `/relay/endpoints/${nameOrId}`)
    if (byId.ok) return byId.body
  }
  const names = (await everyEndpoint(ask)).map(({ name }) => name)
  const near = suggestName(nameOrId, names)
  const hint =
    near !== null
      ? `; did you mean ${near}? "parcel-relay endpoints" lists all`
      : names.length === 0
        ? '; there is none yet: "parcel-relay endpoints add NAME URL" adds one'
        : `; there are ${shown(names)}`
  throw new Error(`no endpoint has the name or id ${nameOrId}${hint}`)
}

export async function everyEndpoint(ask: AskRelay): Promise<readonly EndpointAnswer[]> {
  const asked = { path: '/relay/endpoints', name: 'endpoints', limit: Infinity, query: {} }
  return (await listUpTo<EndpointAnswer>(ask, asked)).items
}

const NAMES_SHOWN = 10

function shown(names: readonly string[]): string {
  return `${names.slice(0, NAMES_SHOWN).join(', ')}${names.length > NAMES_SHOWN ? ', ...' : ''}`
}
