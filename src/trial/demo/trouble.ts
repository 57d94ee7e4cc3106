import type { Sandbox } from '../sandbox/handle.ts'
import { madeEvent } from './made-event.ts'
import type { Shop } from './shop.ts'
import type { TroubledApps } from './troubled-apps.ts'

/** A parcel number that is watched, although the carrier has no such parcel. */
const MISTYPED = 'AB123456798SE'
/** A key that the relay does not know. */
const OTHER_KEY = 'key-of-the-test-system-of-the-carrier'
const WRONGLY_SIGNED = 5
/** How many pushes have a time in a format that the carrier never uses. */
const REFORMATTED = 3
/** The length in bytes of the push that is cut off. */
const CUT_TO = 96

/**
 * Makes realistic trouble to look at in the portal: apps refuse events, the carrier pushes bodies that are not events, some pushes are signed with
 * another key, and a watched number is mistyped. The histories of the demo's parcels stay as they are.
 */
export async function makeTrouble(carrier: Sandbox, shop: Shop, { webhooks }: TroubledApps): Promise<void> {
  for (const { name, url } of webhooks) await shop.addWebhook(name, url)
  await shop.watch(MISTYPED)
  const events = carrier.world.parcels().map(({ trackingIds }) => ({ trackingId: trackingIds[0] ?? '', text: 'At a terminal' }))
  const now = new Date().toISOString()
  const localTime = now.slice(0, 19).replace('T', ' ')
  for (const event of events.slice(0, REFORMATTED)) await carrier.push({ body: madeEvent({ ...event, eventTime: localTime }) })
  for (const event of events.slice(0, 1)) {
    const body = madeEvent({ ...event, eventTime: now })
    await carrier.push({ body: body.slice(0, CUT_TO) })
    for (let nth = 0; nth < WRONGLY_SIGNED; nth++) await carrier.push({ body, sharedKey: OTHER_KEY })
  }
}

export const ABOUT_TROUBLE = [
  'There is trouble to look at: the webhook billing fails, warehouse refuses some',
  'events at first, old-shop is gone; pushes are in quarantine, and others had a',
  `wrong signature (Inbox, Refusals); nobody knows the parcel ${MISTYPED}.`,
  'Begin with the portal, which says what to do.',
]
