import { createHmac } from 'node:crypto'
import type { Member, PullTime, Scan } from './parcel-plan.ts'
import { type Language, languages, type Texts } from './vocabulary.ts'

/** The data about the parcel itself, which the body of each push and pull contains. */
export interface Labels {
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  readonly extra: readonly Member[]
}

/** A published entry with its current texts, which an amendment may have changed. */
export interface PublishedEntry {
  readonly scan: Scan
  readonly texts: Texts
}

function objectOf(members: readonly Member[]): string {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

function spacedObjectOf(members: readonly Member[]): string {
  return `{\r\n${members.map(([name, json]) => `  ${JSON.stringify(name)} : ${json}`).join(',\r\n')}\r\n}\n`
}

function pullTimeOf(atMs: number, form: PullTime): string {
  const text = new Date(atMs).toISOString()
  if (form === 'milliseconds') return text
  return `${text.slice(0, 19)}${form === 'zeros' ? '.000Z' : 'Z'}`
}

function pullEntry({ scan, texts }: PublishedEntry, language: Language | null): string {
  const said = language === null ? undefined : texts[language]
  return objectOf([
    ['status', JSON.stringify(scan.status)],
    ['detailedStatus', JSON.stringify(scan.detailedStatus)],
    ['eventTimestamp', JSON.stringify(pullTimeOf(scan.atMs, scan.pullTime))],
    ['location', JSON.stringify(scan.pullLocation)],
    ['detailedStatusDescription', JSON.stringify(said?.detailed ?? '')],
    ['consumerDescription', JSON.stringify(scan.displayToConsumer ? (said?.consumer ?? null) : null)],
    ['displayToConsumer', String(scan.displayToConsumer)],
    ...scan.extra,
  ])
}

function labelMembers({ trackingIds, distributionType, extra }: Labels): readonly Member[] {
  return [['trackingIds', JSON.stringify(trackingIds)], ['distributionType', JSON.stringify(distributionType)], ...extra]
}

function newestFirst(a: PublishedEntry, b: PublishedEntry): number {
  return b.scan.atMs - a.scan.atMs || a.scan.tie - b.scan.tie || (a.scan.id < b.scan.id ? -1 : 1)
}

/** Makes the body of an `all` answer. `language` null: the carrier has no texts in the language that was asked for. */
export function allAnswer(labels: Labels, entries: readonly PublishedEntry[], language: Language | null): string {
  const statuses = entries.toSorted(newestFirst).map((entry) => pullEntry(entry, language))
  return objectOf([['statuses', `[${statuses.join(',')}]`], ...labelMembers(labels)])
}

/** Makes the body of a `latest` answer. Null: nothing has happened yet. */
export function latestAnswer(labels: Labels, entries: readonly PublishedEntry[], language: Language | null): string | null {
  const [newest] = entries.toSorted(newestFirst)
  return newest === undefined ? null : objectOf([['status', pullEntry(newest, language)], ...labelMembers(labels)])
}

function localized(texts: Texts, textOf: (language: Language) => string | undefined): string {
  const spoken = languages.toReversed().filter((language) => texts[language] !== undefined)
  return JSON.stringify(spoken.map((languageCode) => ({ value: textOf(languageCode) ?? '', languageCode })))
}

/** Makes the body of a push. `spaced`: whether it has line breaks and indentation. */
export function pushBody(labels: Labels, { scan, texts }: PublishedEntry, spaced: boolean): string {
  const members: readonly Member[] = [
    ['status', JSON.stringify(scan.status)],
    ['detailedStatus', JSON.stringify(scan.detailedStatus)],
    ['eventTime', JSON.stringify(new Date(scan.atMs).toISOString())],
    ['location', JSON.stringify(scan.pushLocation)],
    ...labelMembers({ ...labels, extra: [] }),
    ['displayToConsumer', String(scan.displayToConsumer)],
    ['consumerDescription', scan.displayToConsumer ? localized(texts, (language) => texts[language]?.consumer) : '[]'],
    ['detailedStatusDescription', localized(texts, (language) => texts[language]?.detailed)],
    ...scan.extra,
    ...labels.extra,
  ]
  return spaced ? spacedObjectOf(members) : objectOf(members)
}

/** Signs a body. Returns the value of the header `x-service-hmac-sha256`. */
export function signatureOf(body: string, sharedKey: string): string {
  return createHmac('sha256', Buffer.from(sharedKey, 'utf8')).update(Buffer.from(body, 'utf8')).digest('base64')
}
