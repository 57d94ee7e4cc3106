import { z } from 'zod'
import { readInput } from '../read-input.ts'

/** A request to queue deliveries of an endpoint again. */
export interface ReplayOrder {
  /** Deliveries from this sequence on. */
  readonly fromSequence: number
  /** Deliveries queued at this time (epoch milliseconds) or later. */
  readonly fromMs: number
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
/** The body of a replay order. */
export const replayOrderSchema = z
  .strictObject({
    since: z.union([counting, z.iso.datetime({ offset: true, error: SINCE })], { error: SINCE }).optional(),
    sequence: counting.optional(),
    parcel: z.string().max(100).optional(),
    of: z
      .string()
      .regex(/^\d{1,15}$/, { error: 'must be the id of an endpoint' })
      .optional(),
    state: z.enum(['delivered', 'dead', 'cancelled']).optional(),
    dryRun: z.boolean().default(false),
  })
  .refine(({ since, sequence, parcel, of }) => [since, sequence, parcel, of].some((said) => said !== undefined), {
    error: 'must say what to replay: since, sequence, parcel or of',
  })

/** The body of a replay of one delivery; it may be left out. */
export const replayTargetSchema = z.strictObject({ to: z.string().max(100).optional() })

/** Parses the endpoint to which a delivery is replayed, by id; null: its own endpoint. Throws `bad_request`. */
export function parseReplayTarget(body: unknown): string | null {
  const isEmpty = body === undefined || body === null || body === ''
  return readInput('body', replayTargetSchema, isEmpty ? {} : body).to ?? null
}

/** Parses a replay order. Without `state` it selects what did not arrive: dead and cancelled deliveries. Throws `bad_request`. */
export function parseReplayOrder(body: unknown): ReplayOrder {
  const { since, sequence, parcel, of, state, dryRun } = readInput('body', replayOrderSchema, body)
  return {
    fromSequence: typeof since === 'number' ? since : 0,
    fromMs: typeof since === 'string' ? Date.parse(since) : 0,
    sequence: sequence ?? null,
    parcel: parcel ?? null,
    of: of ?? null,
    states: state === undefined ? ['dead', 'cancelled'] : [state],
    dryRun,
  }
}
