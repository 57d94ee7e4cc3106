import type { Sandbox } from '../../sandbox/handle.ts'
import { type Picture, pictureOf } from './picture.ts'
import type { Shop } from './shop.ts'
import type { Subscriber } from './subscriber.ts'

/** How many histories are asked for at the same time. */
const AT_ONCE = 10
/** By then the relay's own schedule has asked about every parcel once. */
const FIRST_POLLS_MS = 7000

/**
 * Builds what takes a picture: it asks the relay for the history of every parcel whose answer is not yet the carrier's. Not before the
 * first polls: a question about a parcel the relay has not heard of makes it ask the carrier, and the demo would watch its own doing.
 */
export function createLook(carrier: Pick<Sandbox, 'world'>, shop: Shop, subscriber: Pick<Subscriber, 'counts'>): () => Promise<Picture> {
  const histories = new Map<string, string>()
  const startedAtMs = performance.now()
  return async () => {
    const parcels = carrier.world.parcels()
    const asksNow = performance.now() - startedAtMs > FIRST_POLLS_MS
    const differing = asksNow ? parcels.filter(({ trackingNumber, answers }) => histories.get(trackingNumber) !== answers.en) : []
    for (let from = 0; from < differing.length; from += AT_ONCE) {
      await Promise.all(
        differing.slice(from, from + AT_ONCE).map(async ({ trackingNumber }) => {
          const history = await shop.history(trackingNumber)
          if (history !== null) histories.set(trackingNumber, history)
        }),
      )
    }
    return {
      // The carrier as it was before the asking, so that a push on its way is not taken for a poll's find.
      parcels: parcels.map((parcel) => pictureOf(parcel, histories.get(parcel.trackingNumber) ?? null)),
      pushes: await shop.pushCounts(),
      subscriber: subscriber.counts(),
    }
  }
}
