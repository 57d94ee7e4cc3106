import { z } from 'zod'
import { readInput } from '../read-input.ts'
import { boundsOf, type Place } from './missing.ts'

/** A request to queue deliveries of an endpoint again, or the events that it never received. */
export interface ReplayOrder {
  /** The events that the endpoint never received, instead of its deliveries. */
  readonly missing: boolean
  /** From this sequence on. */
  readonly fromSequence: number
  /** Deliveries queued, or events recorded, at this time (epoch milliseconds) or later. */
  readonly fromMs: number
  /** With `missing`: up to this sequence. */
  readonly toSequence: number
  /** With `missing`: recorded before this time. */
  readonly toMs: number
  /** Only the event of this sequence; null: any. */
  readonly sequence: number | null
  /** An identifier of a parcel; null: any parcel. */
  readonly parcel: string | null
  /** The id of the endpoint that had the deliveries, which may have been removed; null: the endpoint for which they are queued. */
  readonly of: string | null
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  /** Only count the deliveries. */
  readonly dryRun: boolean
}

const counting = z.int().min(0)
const SINCE = 'must be a sequence or a time such as "2026-03-01T10:00:00Z"'
const place = z.union([counting, z.iso.datetime({ offset: true, error: SINCE })], { error: SINCE })
/** Reads a place from text; null: it is none. */
export function readPlace(text: string): Place | null {
  if (/^\d{1,15}$/.test(text)) return { sequence: Number(text) }
  return z.iso.datetime({ offset: true }).safeParse(text).success ? { atMs: Date.parse(text) } : null
}

/** The body of a replay order. */
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
    error: 'must say what to replay: missing, since, sequence, parcel or of',
  })
  .refine(({ missing, of, state }) => !missing || (of === undefined && state === undefined), {
    error: 'must not have of or state together with missing: what an endpoint never received was delivered to nobody else and has no state',
  })
  .refine(({ missing, until }) => missing || until === undefined, { error: 'must not have until without missing' })

/** The body of a replay of one delivery; it may be left out. */
export const replayTargetSchema = z.strictObject({ to: z.string().max(100).optional() })

/** Parses the endpoint to which a delivery is replayed, by id; null: its own endpoint. Throws `bad_request`. */
export function parseReplayTarget(body: unknown): string | null {
  const isEmpty = body === undefined || body === null || body === ''
  return readInput('body', replayTargetSchema, isEmpty ? {} : body).to ?? null
}

/** Parses a replay order. Without `state` it selects what did not arrive: dead and cancelled deliveries. Throws `bad_request`. */
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
