import { z } from 'zod'
import type { ScanSample } from './scan-rate.ts'

/** A replica's observations of pushes and polls since its last lesson. The replica that polls learns from them. */
export interface Lesson {
  readonly samples: readonly ScanSample[]
  /** The pushes that brought news; null: no such push came. */
  readonly pushes: Arrivals | null
  /** The pushes that went into quarantine because they were not understood; null: no such push came. */
  readonly misread: Arrivals | null
  /** The event times of the entries that a poll reported before any push did, epoch milliseconds. */
  readonly foundByPoll: readonly number[]
}

/** How many pushes came, and when the last of them came, epoch milliseconds. */
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

/** Parses a lesson. Null: the text is damaged, or another version of the relay wrote it. */
export function parseLesson(text: string): Lesson | null {
  try {
    return lesson.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
