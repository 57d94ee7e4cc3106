import type { Sandbox, SandboxParcel } from '../../sandbox/handle.ts'
import { type Picture, pictureOf } from './picture.ts'
import type { Shop } from './shop.ts'
import type { Subscriber } from './subscriber.ts'

/** How many histories are requested at the same time. */
const AT_ONCE = 10
/** After this time the relay has polled every parcel once. */
const FIRST_POLLS_MS = 7000

/**
 * Returns a function that takes a picture of the carrier's and the relay's state. It requests the histories that still differ from the carrier's.
 * It requests none before the first polls, because a request for an unknown parcel makes the relay poll it.
 */
export function createLook(carrier: Pick<Sandbox, 'world'>, shop: Shop, subscriber: Pick<Subscriber, 'counts'>): () => Promise<Picture> {
  const histories = new Map<string, string>()
  const startedAtMs = performance.now()
  const askFor = async ({ trackingNumber, answers }: SandboxParcel) => {
    const found = await shop.histories(trackingNumber)
    // If a replica's history differs from the carrier's, take the replica's, so that the parcel counts as incomplete.
    const history = found.find((one) => one !== answers.en) ?? found[0] ?? null
    if (history !== null) histories.set(trackingNumber, history)
  }
  return async () => {
    const parcels = carrier.world.parcels()
    const asksNow = performance.now() - startedAtMs > FIRST_POLLS_MS
    const differing = asksNow ? parcels.filter(({ trackingNumber, answers }) => histories.get(trackingNumber) !== answers.en) : []
    for (let from = 0; from < differing.length; from += AT_ONCE) await Promise.all(differing.slice(from, from + AT_ONCE).map(askFor))
    return {
      // `parcels` was read before the requests. An event that happened during them would look polled while its push is still on its way.
      parcels: parcels.map((parcel) => pictureOf(parcel, histories.get(parcel.trackingNumber) ?? null)),
      replicas: await shop.news(),
      subscriber: subscriber.counts(),
    }
  }
}
