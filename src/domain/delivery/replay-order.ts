import { z } from 'zod'
import { readInput } from '../read-input.ts'
import { boundsOf, type Place } from './missing.ts'

/** A request to queue events for an endpoint. */
export interface ReplayOrder {
  /** True: queue the events that the endpoint never received. False: queue deliveries again. */
  readonly missing: boolean
  /** Only events with this sequence or a later one. */
  readonly fromSequence: number
  /** Only deliveries queued at this time or later; with `missing`, only events recorded at this time or later. Epoch milliseconds. */
  readonly fromMs: number
  /** With `missing`: only events up to this sequence, inclusive. */
  readonly toSequence: number
  /** With `missing`: only events that were recorded before this time, epoch milliseconds. */
  readonly toMs: number
  /** Only the event with this sequence; null: any event. */
  readonly sequence: number | null
  /** An identifier of a parcel; null: any parcel. */
  readonly parcel: string | null
  /** The id of the endpoint whose deliveries are replayed, even a removed one; null: the endpoint that gets the replay. */
  readonly of: string | null
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  /** True: only count what would be queued. */
  readonly dryRun: boolean
}

const counting = z.int().min(0)
const SINCE = 'must be a sequence or a time such as "2026-03-01T10:00:00Z"'
const place = z.union([counting, z.iso.datetime({ offset: true, error: SINCE })], { error: SINCE })
/** Reads a position in the feed, a sequence or a time, from text. Null: the text is neither. */
export function readPlace(text: string): Place | null {
  if (/^\d{1,15}$/.test(text)) return { sequence: Number(text) }
  return z.iso.datetime({ offset: true }).safeParse(text).success ? { atMs: Date.parse(text) } : null
}

export const replayOrderSchema = z
  .strictObject({
    missing: z.boolean().default(false),
    since: place.optional(),
    until: place.optional(),
    sequence: counting.optional(),
    parcel: z.string().max(100).optional(),
    of: z
      .string()
      .regex(/^\d{1,15}$/, { error: 'must be the id of an endpoint' })
      .optional(),
    state: z.enum(['delivered', 'dead', 'cancelled']).optional(),
    dryRun: z.boolean().default(false),
  })
  .refine(({ missing, since, sequence, parcel, of }) => missing || [since, sequence, parcel, of].some((said) => said !== undefined), {
    error: 'must say what to replay: "missing", "since", "sequence", "parcel" or "of"',
  })
  .refine(({ missing, of, state }) => !missing || (of === undefined && state === undefined), {
    error: 'must not have "of" or "state" together with "missing": events that an endpoint never received have no deliveries',
  })
  .refine(({ missing, until }) => missing || until === undefined, { error: 'must not have "until" without "missing"' })

/** The body of a request that replays one delivery. The request may have no body. */
export const replayTargetSchema = z.strictObject({ to: z.string().max(100).optional() })

/** Returns the id of the endpoint to which a delivery is replayed; null: the delivery's own endpoint. Throws `bad_request`. */
export function parseReplayTarget(body: unknown): string | null {
  const isEmpty = body === undefined || body === null || body === ''
  return readInput('body', replayTargetSchema, isEmpty ? {} : body).to ?? null
}

/** Parses a replay order. An order without `state` selects the deliveries that are dead or cancelled. Throws `bad_request`. */
export function parseReplayOrder(body: unknown): ReplayOrder {
  const { missing, since, until, sequence, parcel, of, state, dryRun } = readInput('body', replayOrderSchema, body)
  return {
    missing,
    ...boundsOf(placeOf(since), placeOf(until)),
    sequence: sequence ?? null,
    parcel: parcel ?? null,
    of: of ?? null,
    states: state === undefined ? ['dead', 'cancelled'] : [state],
    dryRun,
  }
}

function placeOf(said: number | string | undefined): Place | null {
  if (said === undefined) return null
  return typeof said === 'number' ? { sequence: said } : { atMs: Date.parse(said) }
}
