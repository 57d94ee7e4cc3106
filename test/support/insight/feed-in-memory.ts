import type { ReadFeed } from '../../../src/insight/export/export-feed.ts'
import type { FeedEvent } from '../../../src/insight/export/flat-rows.rules.ts'

const RELAY = '0123456789ab'

/** Answers as the feed of a relay does. */
export function feedOf(events: readonly FeedEvent[], { oldest = 1, relay = RELAY, pageMax = 500 } = {}): ReadFeed {
  return async (after, limit) => {
    const last = events.at(-1)?.sequence ?? 0
    const refuse = (type: string, facts: object) =>
      ({ ok: false, status: 410, body: { type: `urn:parcel-relay:error:${type}`, ...facts } }) as const
    if (after > last) return refuse('feed_rewound', { lastSequence: last })
    if (after < oldest - 1) return refuse('feed_gone', { oldestSequence: oldest })
    const page = events.filter(({ sequence }) => sequence > after).slice(0, Math.min(limit, pageMax))
    const next = page.at(-1)?.sequence ?? after
    return { ok: true, status: 200, body: JSON.parse(JSON.stringify({ events: page, next, relay })) }
  }
}
