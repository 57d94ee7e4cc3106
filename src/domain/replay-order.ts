import { z } from 'zod'
import { AppError } from './errors.ts'

/** Which deliveries of an endpoint are to be queued again. */
export interface ReplayOrder {
  /** From this sequence on, or queued at this time (epoch milliseconds) or later. */
  readonly fromSequence: number
  readonly fromMs: number
  /** One event; null: any. */
  readonly sequence: number | null
  /** An identifier of one parcel; null: any. */
  readonly parcel: string | null
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  /** Only count them. */
  readonly dryRun: boolean
}

const counting = z.int().min(0)
const order = z
  .strictObject({
    since: z
      .union([counting, z.iso.datetime({ offset: true })], { error: 'must be a sequence or a time such as "2026-03-01T10:00:00Z"' })
      .optional(),
    sequence: counting.optional(),
    parcel: z.string().max(100).optional(),
    state: z.enum(['delivered', 'dead', 'cancelled']).optional(),
    dryRun: z.boolean().default(false),
  })
  .refine(({ since, sequence, parcel }) => since !== undefined || sequence !== undefined || parcel !== undefined, {
    error: 'since, sequence or parcel must say what to replay',
  })

/** Without a state: what did not arrive. Throws `bad_request`. */
export function parseReplayOrder(body: unknown): ReplayOrder {
  const result = order.safeParse(body, { jitless: true })
  if (!result.success) {
    const [issue] = result.error.issues
    throw new AppError('bad_request', `${issue?.path.join('.') || 'the order to replay'}: ${issue?.message ?? 'is not right'}.`)
  }
  const { since, sequence, parcel, state, dryRun } = result.data
  return {
    fromSequence: typeof since === 'number' ? since : 0,
    fromMs: typeof since === 'string' ? Date.parse(since) : 0,
    sequence: sequence ?? null,
    parcel: parcel ?? null,
    states: state === undefined ? ['dead', 'cancelled'] : [state],
    dryRun,
  }
}
