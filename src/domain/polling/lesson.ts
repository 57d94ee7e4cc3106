import { z } from 'zod'
import type { ScanSample } from './scan-rate.ts'

/** A replica's observations of pushes and polls since its last lesson, for the poller. */
export interface Lesson {
  readonly samples: readonly ScanSample[]
  /** The pushes with news, and when the last of them arrived, epoch milliseconds; null: no push came. */
  readonly pushes: { readonly count: number; readonly lastAtMs: number } | null
  /** The event times of entries that a poll reported first. */
  readonly foundByPoll: readonly number[]
}

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
  pushes: z.object({ count: z.number(), lastAtMs: z.number() }).nullable(),
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
