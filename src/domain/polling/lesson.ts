import { z } from 'zod'
import type { ScanSample } from './scan-rate.ts'

/** A replica's observations of pushes and polls since its last lesson, for the poller. */
export interface Lesson {
  readonly samples: readonly ScanSample[]
  /** The pushes with news, and when the last of them arrived, epoch milliseconds; null: no push came. */
  readonly pushes: Arrivals | null
  /** The same of pushes that were quarantined because they were not understood. */
  readonly misread: Arrivals | null
  /** The event times of entries that a poll reported first. */
  readonly foundByPoll: readonly number[]
}

/** How many pushes came, and when the last one did, epoch milliseconds. */
interface Arrivals {
  readonly count: number
  readonly lastAtMs: number
}

const arrivals = z.object({ count: z.number(), lastAtMs: z.number() }).nullable()
const lesson = z.object({
  samples: z.array(
    z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal('wait'),
        status: z.string(),
        entryCount: z.number(),
        fromMs: z.number(),
        toMs: z.number(),
        scanned: z.boolean(),
      }),
      z.object({ kind: z.literal('place'), status: z.string(), entryCount: z.number() }),
    ]),
  ),
  pushes: arrivals,
  misread: arrivals.default(null),
  foundByPoll: z.array(z.number()),
}) satisfies z.ZodType<Lesson>

export function encodeLesson(taught: Lesson): string {
  return JSON.stringify(taught)
}

/** Parses a lesson; null: the text is damaged, or of another version. */
export function parseLesson(text: string): Lesson | null {
  try {
    return lesson.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
