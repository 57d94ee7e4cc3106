import { isObject, member, parseKeepingNumbers, type RawMembers } from '../../../src/core/domain/json-body.ts'
import { ask } from '../relay/relay.ts'

interface KeptEntry {
  readonly id: number
  readonly known: Readonly<Record<string, unknown>>
  readonly shown: boolean
  readonly texts: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly extra: RawMembers
}

interface KeptParcel {
  readonly identifiers: readonly string[]
  readonly trackingIds: unknown
  readonly distributionType: unknown
  readonly extra: RawMembers
  readonly history: readonly number[]
  readonly entries: ReadonlyMap<number, KeptEntry>
}

/** The code of this consumer was written from the documentation, and shares only the parsing of numbers with the relay. */
export function createFeedConsumer() {
  const parcels = new Map<string, KeptParcel>()
  const kinds = new Map<string, number>()
  let next = 0

  function apply(event: Readonly<Record<string, unknown>>): void {
    const parcel = objectIn(event, 'parcel')
    const id = String(member(parcel, 'id'))
    const kind = String(member(event, 'kind'))
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    const told = kind === 'join' ? listIn(event, 'entries') : [member(event, 'entry')].filter(isObject)
    if (kind === 'join') {
      parcels.delete(String(member(objectIn(event, 'joined'), 'id')))
      parcels.delete(id)
    }
    const entries = new Map([...(parcels.get(id)?.entries ?? []), ...told.filter(isObject).map(keptEntry)])
    const history = listIn(parcel, 'history').map(numberOf)
    for (const known of entries.keys()) if (!history.includes(known)) entries.delete(known)
    parcels.set(id, {
      identifiers: listIn(parcel, 'identifiers').map(String),
      trackingIds: member(parcel, 'trackingIds'),
      distributionType: member(parcel, 'distributionType'),
      extra: rawIn(parcel),
      history,
      entries,
    })
  }

  return {
    parcels,
    kinds,
    next: () => next,
    /** Stores the events of a page, given as JSON text. Returns whether there were any. */
    take(json: string): boolean {
      const page = parseKeepingNumbers(json)
      if (!isObject(page)) throw new Error(`no page: ${json}`)
      for (const event of listIn(page, 'events')) if (isObject(event)) apply(event)
      const before = next
      next = numberOf(member(page, 'next'))
      return next > before
    },
    takeEvent(json: string): void {
      const event = parseKeepingNumbers(json)
      if (!isObject(event)) throw new Error(`no event: ${json}`)
      apply(event)
      next = numberOf(member(event, 'sequence'))
    },
    /** Returns the body that the route `all` should answer for an identifier; undefined: the parcel is unknown. */
    all(identifier: string, languages: readonly string[]): string | undefined {
      const owners = [...parcels.values()].filter(({ identifiers }) => identifiers.includes(identifier))
      if (owners.length > 1) throw new Error(`several parcels are found by ${identifier}`)
      return owners[0] === undefined ? undefined : printParcel(owners[0], languages)
    },
  }
}

export type FeedConsumer = ReturnType<typeof createFeedConsumer>

/** Reads page by page to the end of the feed. */
export async function replayFeed(consumer: FeedConsumer, internalUrl: string, token: string, limit = 100): Promise<void> {
  for (;;) {
    const answer = await ask(internalUrl, token, `/relay/events?after=${consumer.next()}&limit=${limit}`)
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`)
    if (!consumer.take(await answer.text())) return
  }
}

function keptEntry(entry: Readonly<Record<string, unknown>>): [number, KeptEntry] {
  const { id, texts, extra: _extra, ...known } = entry
  if (!isObject(texts)) throw new Error('an entry without texts')
  const byLanguage = Object.fromEntries(
    Object.entries(texts).filter((pair): pair is [string, Record<string, unknown>] => isObject(pair[1])),
  )
  return [numberOf(id), { id: numberOf(id), known, shown: known.displayToConsumer === true, texts: byLanguage, extra: rawIn(entry) }]
}

function printParcel({ history, entries, trackingIds, distributionType, extra }: KeptParcel, languages: readonly string[]): string {
  const statuses = history.map((id) => {
    const entry = entries.get(id)
    if (entry === undefined) throw new Error(`the feed lists entry ${id}, but has never sent it`)
    return printEntry(entry, languages)
  })
  return `{"statuses":[${statuses.join(',')}],"trackingIds":${JSON.stringify(trackingIds)},"distributionType":${JSON.stringify(distributionType)}${printExtra(extra)}}`
}

function printEntry(entry: KeptEntry, languages: readonly string[]): string {
  const { status, detailedStatus, eventTimestamp, location, displayToConsumer } = entry.known
  const known = JSON.stringify({
    status,
    detailedStatus,
    eventTimestamp,
    location,
    detailedStatusDescription: textOf(entry, 'detailed', languages) ?? '',
    consumerDescription: entry.shown ? (textOf(entry, 'consumer', languages) ?? null) : null,
    displayToConsumer,
  })
  return `${known.slice(0, -1)}${printExtra(entry.extra)}}`
}

/** Returns the field in the first of `languages` that has it, or else in the first other language by name; undefined: no language has it. */
function textOf({ texts }: KeptEntry, field: string, languages: readonly string[]): unknown {
  const said = [...languages, ...Object.keys(texts).sort()].find((language) => texts[language]?.[field] !== undefined)
  return said === undefined ? undefined : texts[said]?.[field]
}

const printExtra = (extra: RawMembers) => extra.map(([name, json]) => `,${JSON.stringify(name)}:${json}`).join('')

function rawIn(object: Readonly<Record<string, unknown>>): RawMembers {
  return Object.entries(objectIn(object, 'extra')).map(([name, value]) => [name, JSON.stringify(value)] as const)
}

function objectIn(object: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = member(object, name)
  if (!isObject(value)) throw new Error(`no ${name} in ${JSON.stringify(object)}`)
  return value
}

function listIn(object: Readonly<Record<string, unknown>>, name: string): readonly unknown[] {
  const value = member(object, name)
  if (!Array.isArray(value)) throw new Error(`no ${name} in ${JSON.stringify(object)}`)
  return value
}

/** Converts a number that the JSON reader has kept as it was written. */
const numberOf = (value: unknown) => Number(JSON.stringify(value))
