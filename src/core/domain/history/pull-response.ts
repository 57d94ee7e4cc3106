import { createHash } from 'node:crypto'
import { parseIdentifier } from '../identifiers.ts'
import { parseInstant } from '../instant.ts'
import { isObject, member, parseKeepingNumbers, type RawMembers, readJson, unknownMembers } from '../json-body.ts'
import { parseLanguageTag, primarySubtag } from '../languages.ts'
import { compareBytes, derivedText, greatestText } from '../text.ts'
import type { Entry } from './history.ts'
import type { PollObservation, Sighting, Texts } from './observation.ts'
import { listedId, sightingsOf } from './sightings.ts'

/** How many entries a parcel may have (DOMAIN 1.6). */
export const ENTRIES_MAX = 2000

const ENTRY_MEMBERS = new Set([
  'status',
  'detailedStatus',
  'eventTimestamp',
  'location',
  'detailedStatusDescription',
  'consumerDescription',
  'displayToConsumer',
])
const ANSWER_MEMBERS = new Set(['statuses', 'trackingIds', 'distributionType'])

/** Facts about an answer that its body does not contain. */
export interface AnswerContext {
  /** The identifier that the request named. */
  readonly asked: string
  /** The language that the request named. */
  readonly language: string
  readonly contentLanguage: string | null
  /** When the request was sent, epoch milliseconds. */
  readonly askedAtMs: number
}

export type ParsedAnswer = { readonly ok: true; readonly observation: PollObservation } | { readonly ok: false; readonly reason: string }

/**
 * Parses the body of the carrier's `all` answer (spec, "GetAllStatusesResponse"). Skips and counts invalid entries and identifiers. Refuses a
 * body that does not have the form of this answer.
 */
export function parseAllAnswer(body: Uint8Array, context: AnswerContext): ParsedAnswer {
  const reading = readJson(body)
  if (!reading.ok) return reading
  if (!isObject(reading.value)) return { ok: false, reason: 'not_an_object' }
  const statuses = member(reading.value, 'statuses')
  const ids = member(reading.value, 'trackingIds')
  if (!Array.isArray(statuses)) return { ok: false, reason: 'no_statuses' }
  if (!Array.isArray(ids)) return { ok: false, reason: 'no_tracking_ids' }
  if (statuses.length > ENTRIES_MAX) return { ok: false, reason: 'too_many_entries' }

  const exact = hasUnknown(reading.value, statuses) ? parseKeepingNumbers(reading.text) : reading.value
  const answer = isObject(exact) ? exact : reading.value
  const exactItems = member(answer, 'statuses')
  const items = Array.isArray(exactItems) ? exactItems : statuses
  const language = parseLanguageTag(context.contentLanguage) ?? context.language
  const sightings = items.map((item) => parseItem(item, language))
  const trackingIds = ids.map(parseIdentifier)
  const distributionType = member(answer, 'distributionType')
  return {
    ok: true,
    observation: {
      kind: 'poll',
      asked: context.asked,
      language,
      askedAtMs: context.askedAtMs,
      body,
      sightings: sightings.filter((sighting) => sighting !== null),
      trackingIds: [...new Set(trackingIds.filter((id) => id !== null))],
      distributionType: typeof distributionType === 'string' ? derivedText(distributionType) : null,
      extra: unknownMembers(answer, ANSWER_MEMBERS),
      skipped: [...sightings, ...trackingIds].filter((item) => item === null).length,
      textsDropped: items.reduce<number>((sum, item, at) => sum + (sightings[at] === null ? 0 : droppedTexts(item)), 0),
    },
  }
}

function hasUnknown(answer: Readonly<Record<string, unknown>>, statuses: readonly unknown[]): boolean {
  return (
    Object.keys(answer).some((name) => !ANSWER_MEMBERS.has(name)) ||
    statuses.some((item) => isObject(item) && Object.keys(item).some((name) => !ENTRY_MEMBERS.has(name)))
  )
}

function parseItem(item: unknown, language: string): Sighting | null {
  if (!isObject(item)) return null
  const status = member(item, 'status')
  const detailedStatus = member(item, 'detailedStatus')
  const instant = parseInstant(member(item, 'eventTimestamp'))
  if (typeof status !== 'string' || status === '' || typeof detailedStatus !== 'string' || detailedStatus === '' || instant === null)
    return null
  const location = member(item, 'location')
  const displayToConsumer = member(item, 'displayToConsumer')
  return {
    source: 'poll',
    status: derivedText(status),
    detailedStatus: derivedText(detailedStatus),
    instant,
    location: typeof location === 'string' ? derivedText(location) : '',
    displayToConsumer: typeof displayToConsumer === 'boolean' ? displayToConsumer : null,
    distributionType: null,
    texts: { [language]: itemTexts(member(item, 'consumerDescription'), member(item, 'detailedStatusDescription')) },
    extra: unknownMembers(item, ENTRY_MEMBERS),
  }
}

function itemTexts(consumer: unknown, detailed: unknown): Texts {
  return {
    ...(typeof consumer === 'string' ? { consumer: derivedText(consumer) } : consumer === null ? { consumer: null } : {}),
    ...(typeof detailed === 'string' ? { detailed: derivedText(detailed) } : detailed === null ? { detailed: null } : {}),
  }
}

/** Counts the texts of an item that are dropped because they are not strings. */
function droppedTexts(item: unknown): number {
  const texts = isObject(item) ? [member(item, 'consumerDescription'), member(item, 'detailedStatusDescription')] : []
  return texts.filter((text) => text !== undefined && text !== null && typeof text !== 'string').length
}

/** The data from which answers to apps are made. */
export interface AnswerSource {
  /** Newest first (DOMAIN 3). */
  readonly entries: readonly Entry[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  /** Members that the spec does not name, from the answer that was asked for last. Apps get them after the known members. */
  readonly extra: RawMembers
}

export interface EncodedAnswer {
  readonly body: string
  /** The languages of its texts, the most preferred first; never empty. */
  readonly contentLanguages: readonly string[]
}

/**
 * Encodes the answer to `GET .../all` in the carrier's format (spec, "GetAllStatusesResponse"). `languages`: in order of preference, never
 * empty.
 */
export function encodeAll(source: AnswerSource, languages: readonly string[]): EncodedAnswer {
  const used = new Set<string>()
  const { entries } = source
  const statuses = entries.some((entry) => entry.extra.length > 0)
    ? `[${entries.map((entry) => encodeEntry(entry, languages, used)).join(',')}]`
    : JSON.stringify(entries.map((entry) => presentMembers(entry, languages, used)))
  return { body: `{"statuses":${statuses}${encodeTail(source)}`, contentLanguages: contentLanguages(used, languages) }
}

/** Encodes the answer to `GET .../latest` (spec, "GetLatestStatusResponse"). Null: the parcel has no entry (DOMAIN 3.3). */
export function encodeLatest(source: AnswerSource, languages: readonly string[]): EncodedAnswer | null {
  const [latest] = source.entries
  if (latest === undefined) return null
  const used = new Set<string>()
  const status = encodeEntry(latest, languages, used)
  return { body: `{"status":${status}${encodeTail(source)}`, contentLanguages: contentLanguages(used, languages) }
}

function encodeTail({ trackingIds, distributionType, extra }: AnswerSource): string {
  return `,"trackingIds":${JSON.stringify(trackingIds)},"distributionType":${JSON.stringify(distributionType)}${encodeMembers(extra)}}`
}

/** Appends unknown members as text, because parsing could change the digits of their numbers. */
function encodeEntry(entry: Entry, languages: readonly string[], used: Set<string>): string {
  const known = JSON.stringify(presentMembers(entry, languages, used))
  return entry.extra.length === 0 ? known : `${known.slice(0, -1)}${encodeMembers(entry.extra)}}`
}

/** Returns the members of an entry that the spec names. Adds the languages of the chosen texts to `used`. */
function presentMembers(entry: Entry, languages: readonly string[], used: Set<string>) {
  const detailed = pickText(entry, 'detailed', languages)
  const consumer = entry.displayToConsumer ? pickText(entry, 'consumer', languages) : null
  for (const picked of [detailed, consumer]) if (picked?.text) used.add(picked.language)
  return {
    status: entry.status,
    detailedStatus: entry.detailedStatus,
    eventTimestamp: entry.eventTimestamp,
    location: entry.location,
    detailedStatusDescription: detailed?.text ?? '',
    consumerDescription: consumer?.text ?? null,
    displayToConsumer: entry.displayToConsumer,
  }
}

/** Encodes unknown members as JSON text: a comma before each, and values as they were received. */
export function encodeMembers(extra: RawMembers): string {
  return extra.map(([name, json]) => `,${JSON.stringify(name)}:${json}`).join('')
}

/** Returns the text of an entry in the first of `languages` that has one, or else in any language. Null: the entry has no text. */
export function pickText(
  entry: Pick<Entry, 'texts'>,
  field: keyof Texts,
  languages: readonly string[],
): { readonly language: string; readonly text: string | null } | null {
  for (const language of languages) {
    const text = entry.texts[language]?.[field]
    if (text !== undefined) return { language, text }
  }
  const others = Object.keys(entry.texts).filter((language) => entry.texts[language]?.[field] !== undefined)
  const [language] = others.sort(compareBytes)
  return language === undefined ? null : { language, text: entry.texts[language]?.[field] ?? null }
}

function contentLanguages(used: ReadonlySet<string>, languages: readonly string[]): readonly string[] {
  if (used.size === 0) return languages.slice(0, 1)
  return [...languages.filter((language) => used.has(language)), ...[...used].filter((language) => !languages.includes(language)).sort()]
}

/** Whether any entry lacks texts both under the language's exact tag and under its primary subtag (DOMAIN 4.2). */
export function isLanguageMissing(entries: readonly Entry[], language: string): boolean {
  const primary = primarySubtag(language)
  return entries.some((entry) => entry.texts[language] === undefined && entry.texts[primary] === undefined)
}

/**
 * Returns the `listedId` of each sighting in the bytes of a poll answer, in its order (DOMAIN 3.1). Null: this version cannot parse the bytes.
 * The list is all that the order of a history needs of an answer, so it is kept when the bytes are removed.
 */
export function listedIn(body: Uint8Array, language: string): readonly string[] | null {
  const reading = parseAllAnswer(body, { asked: '', language, contentLanguage: null, askedAtMs: 0 })
  return reading.ok ? sightingsOf(reading.observation).map(listedId) : null
}

/** A stored answer to a poll, without its sightings. Answers in the same language with equal bytes are stored once, with the latest `askedAtMs`. */
export interface KeptAnswer {
  readonly language: string
  readonly askedAtMs: number
  /** SHA-256 of the body in hexadecimal. Where DOMAIN 3.1 says that the greatest bytes decide, the greatest digest does. */
  readonly digest: string
  readonly entryCount: number
  /** Whether items were skipped. Then the answer decides neither how often an entry occurs nor the order of entries (DOMAIN 6.7). */
  readonly flawed: boolean
  readonly trackingIds: readonly string[]
  readonly distributionType: string | null
  readonly extra: RawMembers
}

export function keptAnswer(poll: PollObservation): KeptAnswer {
  const { language, askedAtMs, trackingIds, distributionType, extra } = poll
  const digest = createHash('sha256').update(poll.body).digest('hex')
  return { language, askedAtMs, digest, entryCount: poll.sightings.length, flawed: poll.skipped > 0, trackingIds, distributionType, extra }
}

/** The last-asked answer comes first. */
function compareLastAskedAnswer(a: KeptAnswer, b: KeptAnswer): number {
  return b.askedAtMs - a.askedAtMs || compareBytes(b.digest, a.digest) || compareBytes(b.language, a.language)
}

/**
 * Returns the answer that decides the order of entries at equal instants: the one with more entries, else the last-asked one, else the one
 * with the greatest digest (DOMAIN 3.1). Null: both are missing or flawed.
 */
export function betterOrderAnswer<A extends KeptAnswer>(a: A | null, b: A | null): A | null {
  const [first, second] = [a, b].filter((answer) => answer !== null && !answer.flawed)
  if (first === undefined || first === null) return null
  if (second === undefined || second === null) return first
  return (second.entryCount - first.entryCount || compareLastAskedAnswer(first, second)) <= 0 ? first : second
}

/** How many of the last-asked answers are kept for each parcel and language. Older answers are kept only if they decide something. */
export const ANSWERS_MAX = 8

interface KeptAnswers {
  readonly kept: readonly KeptAnswer[]
  /** Decides the order of entries at equal instants; null: no answer does. */
  readonly order: KeptAnswer | null
}

/**
 * Selects the answers to keep: the answer that decides the order, and in each language the last-asked answers and the last answer with a
 * distribution type. The other answers do not influence what is served, so they can be dropped at any time.
 */
export function keepAnswers(all: readonly KeptAnswer[]): KeptAnswers {
  const answers = [
    ...new Map(
      all
        .toSorted(compareLastAskedAnswer)
        .toReversed()
        .map((answer) => [answerId(answer), answer]),
    ).values(),
  ]
  const order = answers.reduce<KeptAnswer | null>(betterOrderAnswer, null)
  const lasting = new Set<KeptAnswer | null | undefined>([order])
  for (const inLanguage of Map.groupBy(answers.toSorted(compareLastAskedAnswer), ({ language }) => language).values()) {
    for (const answer of inLanguage.slice(0, ANSWERS_MAX)) lasting.add(answer)
    lasting.add(inLanguage.find(({ distributionType }) => distributionType !== null))
  }
  return { kept: answers.filter((answer) => lasting.has(answer)), order }
}

/** Answers in the same language with equal bytes have the same id. */
export function answerId({ language, digest }: Pick<KeptAnswer, 'language' | 'digest'>): string {
  return `${language}/${digest}`
}

/** What the answers to polls say of a parcel as a whole, and not of an entry. */
export interface ParcelHead extends Pick<KeptAnswer, 'trackingIds' | 'distributionType' | 'extra'> {}

/** Takes the values from the last-asked answer, and the distribution type from the last one that has it. Null: no poll was answered. */
export function headOf(answers: readonly KeptAnswer[]): ParcelHead | null {
  const lastAsked = answers.toSorted(compareLastAskedAnswer)
  const [last] = lastAsked
  if (last === undefined) return null
  const distributionType = lastAsked.find((answer) => answer.distributionType !== null)?.distributionType ?? null
  return { trackingIds: last.trackingIds, distributionType, extra: last.extra }
}

/** Null: no push names any. */
function pushedDistributionType(entries: readonly Entry[]): string | null {
  let greatest: string | null = null
  for (const { members } of entries)
    for (const { sighting } of members) {
      const { distributionType: said } = sighting
      if (said !== null && said !== greatest) greatest = greatest === null ? said : (greatestText([greatest, said]) ?? said)
    }
  return greatest
}

/** Chooses the values that belong to the parcel and not to an entry (DOMAIN 2.5): from the last-asked poll that has them, else from pushes. */
export function presentParcel(entries: readonly Entry[], answers: readonly KeptAnswer[], trackingIds: readonly string[]): AnswerSource {
  return presentWith(entries, headOf(answers), trackingIds)
}

/** Does the same with the values that polls have given; null: no poll was answered. */
export function presentWith(entries: readonly Entry[], head: ParcelHead | null, trackingIds: readonly string[]): AnswerSource {
  const listed = head?.trackingIds ?? []
  const others = trackingIds.filter((id) => !listed.includes(id)).sort(compareBytes)
  return {
    entries,
    trackingIds: [...listed, ...others],
    distributionType: head?.distributionType ?? pushedDistributionType(entries) ?? '',
    extra: head?.extra ?? [],
  }
}
