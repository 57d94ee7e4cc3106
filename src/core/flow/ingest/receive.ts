import { AppError } from '../../domain/errors.ts'
import type { Content } from '../../domain/history/content.ts'
import type { RecordOutcome } from '../../domain/history/recording.ts'
import { parseIdentifier } from '../../domain/identifiers.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import { isCheckPush, type ParseEvent, parsePush, parseWebhookEvent } from '../../domain/ingest/parse-push.ts'
import type { RefusalSamples, RefusedPush } from '../../domain/ingest/refused-spells.ts'
import { isSignature, type Verifier } from '../../domain/ingest/signature.ts'
import { type Instant, parseInstant } from '../../domain/instant.ts'
import type { Memory } from '../ports.ts'
import type { Part, Relay } from '../relay-part.ts'

/** A push as it came: `body` is not yet decoded, decompressed or parsed (DOMAIN 5.1). */
interface PushRequest {
  readonly body: Uint8Array
  /** All values of the signature header. A push with more than one is refused. */
  readonly signatures: readonly string[]
  readonly contentEncoding: string | null
  /** Describes the sender and the headers of a refused push. */
  readonly origin: () => Pick<RefusedPush, 'address' | 'header'>
}

export interface ReceivePorts extends Pick<Relay, 'clock'>, Part<'meter', 'pushReceived'> {
  readonly verifier: Verifier
  readonly parseEvent: ParseEvent
  /** Resolves only when the push is durable (DOMAIN 5.2). While there is trouble with the disk, it refuses pushes. */
  readonly recorder: { submit(incoming: IncomingPush): Promise<RecordOutcome> }
  /** Throws `storage_unavailable` while the recorder refuses every push. For test pushes of the relay itself, which are not recorded. */
  readonly admit: () => void
  readonly refusals: Pick<RefusalSamples, 'isDue' | 'take'>
  readonly comebacks: Comebacks
}

/** If it resolves, the push is durable and is answered with 2xx. */
export type Receive = (request: PushRequest) => Promise<RecordOutcome | { readonly kind: 'check' }>

/** How long a sender is asked to wait if the store does not say how long. */
const RETRY_AFTER_MS = 5000

/**
 * Creates the function that verifies and records pushes. If it throws `signature_invalid`, nothing is stored. If it throws
 * `storage_unavailable`, the push may not be durable, so the sender must push again; a duplicate does no harm.
 */
export function createReceive({ verifier, parseEvent, recorder, admit, meter, clock, refusals, comebacks }: ReceivePorts): Receive {
  const verified = ({ body, signatures, origin }: PushRequest): number => {
    const signature = onlyOne(signatures)
    const keyIndex = signature === null ? null : verifier.verify(body, signature)
    if (keyIndex !== null) return keyIndex
    if (refusals.isDue()) refusals.take({ ...origin(), body, signatures })
    throw signatureInvalid()
  }

  const record = async (incoming: IncomingPush, [signature = '']: readonly string[]): Promise<RecordOutcome> => {
    try {
      const outcome = await recorder.submit(incoming)
      comebacks.taken(signature)
      return outcome
    } catch (error) {
      comebacks.refused(signature)
      throw error
    }
  }

  return async (request) => {
    const receivedAtMs = clock.now()
    let keyIndex: number | null = null
    let isCheck = false
    try {
      keyIndex = verified(request)
      isCheck = isCheckPush(request.body)
      if (isCheck) {
        admit()
        meter.pushReceived('check', keyIndex)
        return { kind: 'check' }
      }
      const { body, contentEncoding } = request
      const outcome = await record(parsePush({ body, contentEncoding, receivedAtMs, keyIndex }, parseEvent), request.signatures)
      meter.pushReceived(outcome.kind, keyIndex)
      return outcome
    } catch (cause) {
      const failure = cause instanceof AppError ? cause : storageUnavailable(cause)
      // Nothing of the carrier's was refused, so no operator must ask it to send anything again.
      meter.pushReceived(isCheck ? 'check' : failure.code, keyIndex)
      throw failure
    }
  }
}

/**
 * Throws `signature_invalid` unless there is exactly one signature, and it has the form of one. So a push without a signature is refused before
 * its body is read.
 */
export function admitSignature(signatures: readonly string[]): void {
  const signature = onlyOne(signatures)
  if (signature === null || !isSignature(signature)) throw signatureInvalid()
}

function onlyOne(signatures: readonly string[]): string | null {
  return signatures.length === 1 ? (signatures[0] ?? null) : null
}

/** The message is the same for every mistake, so that a sender who guesses learns nothing. */
function signatureInvalid(): AppError {
  return new AppError(
    'signature_invalid',
    'The x-service-hmac-sha256 header must occur exactly once, with the signature of the exact body.',
  )
}

function storageUnavailable(cause: unknown): AppError {
  return new AppError('storage_unavailable', 'The event could not be stored now. Send it again later.', {
    cause,
    retryAfterMs: RETRY_AFTER_MS,
  })
}

/** Remembers the pushes that could not be stored, and notices when they come again. */
type Comebacks = ReturnType<typeof createComebacks>

/** Enough for hours of refused pushes. A signature takes some hundred bytes. */
const KEPT_MAX = 20_000
/** A refused push that comes again later than this is not noticed. */
const KEPT_MS = 24 * 3_600_000

interface ComebackPorts extends Part<'clock', 'monotonic'> {
  /** Called when a push is refused for the first time, and when a refused push has come again and was stored. */
  readonly tell: (what: 'first' | 'again') => void
}

/** Recognizes a push by its signature, because the same bytes always have the same signature. */
export function createComebacks({ tell, clock }: ComebackPorts) {
  /** The time of the first refusal by signature, the oldest first. */
  const waiting = new Map<string, number>()

  function forgetOld(): void {
    for (const [signature, atMs] of waiting) {
      if (waiting.size < KEPT_MAX && clock.monotonic() - atMs < KEPT_MS) return
      waiting.delete(signature)
    }
  }

  return {
    /** Call it when a push with this signature could not be stored. */
    refused(signature: string) {
      if (waiting.has(signature)) return
      forgetOld()
      waiting.set(signature, clock.monotonic())
      tell('first')
    },
    /** Call it when a push with this signature was stored. */
    taken(signature: string) {
      if (waiting.size === 0) return
      const atMs = waiting.get(signature)
      if (atMs !== undefined && waiting.delete(signature) && clock.monotonic() - atMs < KEPT_MS) tell('again')
    },
  }
}

/** An address whose pushes were refused because their signatures did not match. Times are epoch milliseconds. */
export interface RefusedSender {
  readonly address: string
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** An attacker may have any number of addresses, so only the addresses that were refused last are remembered. */
const SENDERS_MAX = 50

/** Remembers, until this process ends, some of the addresses that sent refused pushes. */
export function createRefusedSenders(clock: { now(): number }) {
  const senders = new Map<string, RefusedSender>()
  return {
    add(address: string) {
      const lastAtMs = clock.now()
      const { count, firstAtMs } = senders.get(address) ?? { count: 0, firstAtMs: lastAtMs }
      // Move the address to the end, because the map is in the order of the last refusals.
      senders.delete(address)
      senders.set(address, { address, count: count + 1, firstAtMs, lastAtMs })
      const [oldest] = senders.keys()
      if (senders.size > SENDERS_MAX && oldest !== undefined) senders.delete(oldest)
    },
    /** The address that was refused last comes first. */
    list: (): readonly RefusedSender[] => [...senders.values()].reverse(),
  }
}

/** What all events of one template have in common: everything but time and parcel. */
interface EventTemplate {
  /** `encodeContent(said)` */
  readonly content: string
  readonly said: Content
  readonly textsDropped: number
}

/** Instead of a template: its text was seen once (only repeated texts are worth analysing), or it was analysed and cannot be used. */
export type CachedTemplate = EventTemplate | 'met' | 'unfit'

const TIME = /"eventTime"\s*:\s*"([\d:.TZ-]{17,30})"/
const TRACKING_ID = /"trackingIds"\s*:\s*\[\s*"([0-9A-Za-z]{4,40})"\s*\]/
/** One character per byte: what is searched for is ASCII, and equal bytes mean the same. */
const AS_BYTES = 'latin1'
/** Characters that JSON text cannot contain, in place of what was cut out. */
const TIME_MARK = '\u0001'
const TRACKING_ID_MARK = '\u0002'
/**
 * Values to check that an event's time and id are read from these places; two of each, because the text may contain one of them elsewhere.
 */
const OTHERS = [
  { time: '2001-02-03T04:05:06Z', trackingId: 'OTHER1' },
  { time: '2011-12-13T14:15:16Z', trackingId: 'OTHER2' },
]
/** Longer templates are not cached. */
const TEMPLATE_CHARS_MAX = 2048

/**
 * Parses events like `parseWebhookEvent`, and caches their templates: nearly every event repeats another word for word, except for time and
 * parcel. Of such an event only the time and the tracking id are parsed.
 */
export function createEventTemplateCache(templates: Memory<CachedTemplate>): ParseEvent {
  return (body, contentEncoding) => {
    const cut = contentEncoding === null ? cutOut(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(AS_BYTES)) : null
    if (cut === null) return parseWebhookEvent(body, contentEncoding)
    const known = templates.get(cut.template)
    if (known === undefined || typeof known === 'string') {
      if (known === undefined && cut.template.length <= TEMPLATE_CHARS_MAX) templates.set(cut.template, 'met')
      else if (known === 'met') templates.set(cut.template, templateOf(cut.template) ?? 'unfit')
      return parseWebhookEvent(body, contentEncoding)
    }
    const { content, said, textsDropped } = known
    const { instant, trackingId } = cut
    return { ok: true, observation: { kind: 'push', trackingIds: [trackingId], sighting: { ...said, instant }, content, textsDropped } }
  }
}

interface Cut {
  /** The text with marks in place of the time and the tracking id. */
  readonly template: string
  readonly instant: Instant
  readonly trackingId: string
}

/** Cuts the time and the tracking id out of an event's text. Null: the text alone does not show one of each. */
function cutOut(text: string): Cut | null {
  const time = TIME.exec(text)
  const id = TRACKING_ID.exec(text)
  if (time === null || id === null) return null
  const [timeMatch, timeText = ''] = time
  const [idMatch, idText = ''] = id
  const instant = parseInstant(timeText)
  const trackingId = parseIdentifier(idText)
  if (instant === null || trackingId === null) return null
  const timeAt = time.index + timeMatch.lastIndexOf(timeText)
  const idAt = id.index + idMatch.lastIndexOf(idText)
  const template =
    timeAt < idAt
      ? text.slice(0, timeAt) + TIME_MARK + text.slice(timeAt + timeText.length, idAt) + TRACKING_ID_MARK + text.slice(idAt + idText.length)
      : text.slice(0, idAt) + TRACKING_ID_MARK + text.slice(idAt + idText.length, timeAt) + TIME_MARK + text.slice(timeAt + timeText.length)
  return { template, instant, trackingId }
}

/**
 * What all events of a template have in common; null: the text is ambiguous. With other times and tracking ids at the marks it must parse
 * as an event with exactly these, because the marks may be inside something else or their names may occur twice.
 */
function templateOf(template: string): EventTemplate | null {
  const [first = null, second = null] = OTHERS.map((other) => readAs(template, other))
  return second === null ? null : first
}

function readAs(template: string, { time, trackingId }: (typeof OTHERS)[number]): EventTemplate | null {
  const reading = parseWebhookEvent(Buffer.from(template.replace(TIME_MARK, time).replace(TRACKING_ID_MARK, trackingId), AS_BYTES), null)
  if (!reading.ok) return null
  const { trackingIds, content, sighting, textsDropped } = reading.observation
  const { instant, ...said } = sighting
  return instant.text === time && trackingIds.length === 1 && trackingIds[0] === trackingId ? { content, said, textsDropped } : null
}
