import { z } from 'zod'
import { INSTEAD_OF_MISSING } from '../../core/domain/delivery/delivery-list.ts'
import { isObject, member } from '../../core/domain/json-body.ts'
import { readInput, wrongInput } from '../../core/domain/read-input.ts'

/** A request to queue deliveries for an endpoint again. */
export interface ReplayOrder {
  /** Only events with this sequence or a later one. */
  readonly fromSequence: number
  /** Only deliveries queued at this time or later. Epoch milliseconds. */
  readonly fromMs: number
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

export const replayOrderSchema = z
  .strictObject({
    since: place.optional(),
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
    error: 'must say what to replay: "since", "sequence", "parcel" or "of"',
  })

/** Parses a replay order. An order without `state` selects the deliveries that are dead or cancelled. Throws `bad_request`. */
export function parseReplayOrder(body: unknown): ReplayOrder {
  if (isObject(body) && member(body, 'missing') !== undefined)
    throw wrongInput('body', 'missing', `missing is no longer an order. ${INSTEAD_OF_MISSING}`)
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
