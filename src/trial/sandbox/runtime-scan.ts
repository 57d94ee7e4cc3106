import { memberOf } from './answer.ts'
import { type ParcelPlan, plainScan, type Scan, uneventful } from './parcel-plan.ts'
import { drawFor, randomFor } from './random.ts'
import { type LanguageTexts, type Texts, type Word, words } from './vocabulary.ts'

/** A scan that a test requests. */
export interface ScanOrder {
  readonly status: string
  /** Default: the status. */
  readonly detailedStatus?: string
  /** Epoch milliseconds. Default: now. An earlier time makes a backdated scan. */
  readonly atMs?: number
  readonly location?: string
  readonly displayToConsumer?: boolean
  /** Appended to every text of the scan. */
  readonly note?: string
}

/** A parcel that a test requests has no entries at first. */
export interface ParcelOrder {
  readonly trackingNumber: string
  readonly trackingIds: readonly string[]
  readonly numberOnly?: boolean
}

/** The body may be any text, even one that is not an event. */
export interface PushOrder {
  readonly body: string
  /** The key that signs the push. Default: the sandbox's `sharedKey`. */
  readonly sharedKey?: string
}

function wordFor(order: ScanOrder): Word {
  const word = knownWord(order)
  return order.note === undefined ? word : { ...word, texts: withNote(word.texts, order.note) }
}

function withNote({ en, sv }: Texts, note: string): Texts {
  const noted = ({ consumer, detailed }: LanguageTexts): LanguageTexts => ({
    consumer: `${consumer} ${note}`,
    detailed: `${detailed} ${note}`,
  })
  return { ...(en === undefined ? {} : { en: noted(en) }), ...(sv === undefined ? {} : { sv: noted(sv) }) }
}

function knownWord(order: ScanOrder): Word {
  const detailedStatus = order.detailedStatus ?? order.status
  const shown = Object.values(words).find((word) => word.status === order.status && word.detailedStatus === detailedStatus)
  if (shown !== undefined) return shown
  const texts = {
    en: { consumer: `News: ${detailedStatus}`, detailed: `Scanned as ${detailedStatus}` },
    sv: { consumer: `Nytt: ${detailedStatus}`, detailed: `Skannat som ${detailedStatus}` },
  }
  return { status: order.status, detailedStatus, displayToConsumer: true, texts }
}

/** `nth`: the number of the scan among those that were requested of this sandbox. */
export function orderedScan(order: ScanOrder, trackingNumber: string, nth: number, seed: number, nowMs: number): Scan {
  const id = `${trackingNumber}/ordered-${nth}`
  const scan = plainScan(id, wordFor(order), order.atMs ?? nowMs, order.location ?? '', randomFor(seed, id))
  // If several scans have the same instant, the one that was requested last is listed first.
  const placed = { ...scan, publishedAtMs: nowMs, tie: -nth - drawFor(seed, id) }
  return order.displayToConsumer === undefined ? placed : { ...placed, displayToConsumer: order.displayToConsumer }
}

export function orderedParcel({ trackingNumber, trackingIds, numberOnly = false }: ParcelOrder): ParcelPlan {
  return { ...uneventful, trackingNumber, trackingIds, numberOnly }
}

/** Throws a RangeError that says what to write. */
export function parseScanOrder(body: unknown): ScanOrder {
  const [status, detailedStatus, atMs, location, displayToConsumer, note] = [
    'status',
    'detailedStatus',
    'atMs',
    'location',
    'displayToConsumer',
    'note',
  ].map((name) => memberOf(body, name))
  if (typeof status !== 'string' || status === '') throw new RangeError('status must be a word such as TerminalArrived')
  if (atMs !== undefined && (typeof atMs !== 'number' || !Number.isSafeInteger(atMs)))
    throw new RangeError('atMs must be epoch milliseconds')
  return {
    status,
    ...(typeof detailedStatus === 'string' ? { detailedStatus } : {}),
    ...(atMs === undefined ? {} : { atMs }),
    ...(typeof location === 'string' ? { location } : {}),
    ...(typeof displayToConsumer === 'boolean' ? { displayToConsumer } : {}),
    ...(typeof note === 'string' ? { note } : {}),
  }
}

/** Throws a RangeError that says what to write. */
export function parsePushOrder(order: unknown): PushOrder {
  const [body, sharedKey] = [memberOf(order, 'body'), memberOf(order, 'sharedKey')]
  if (typeof body !== 'string') throw new RangeError('body must be the text to push')
  if (sharedKey === undefined) return { body }
  if (typeof sharedKey !== 'string' || sharedKey === '') throw new RangeError('sharedKey must be a key')
  return { body, sharedKey }
}

/** Throws a RangeError that says what to write. */
export function parseParcelOrder(body: unknown): ParcelOrder {
  const trackingNumber = memberOf(body, 'trackingNumber')
  const trackingIds = memberOf(body, 'trackingIds')
  if (typeof trackingNumber !== 'string' || !/^[A-Z0-9]{4,40}$/.test(trackingNumber))
    throw new RangeError('trackingNumber must look like AB123456789SE')
  const isId = (id: unknown): id is string => typeof id === 'string' && /^\d{4,40}$/.test(id)
  if (!Array.isArray(trackingIds) || trackingIds.length === 0 || !trackingIds.every(isId))
    throw new RangeError('trackingIds must be numeric strings')
  return { trackingNumber, trackingIds, numberOnly: memberOf(body, 'numberOnly') === true }
}
