import type { Sandbox } from '../../sandbox/handle.ts'
import { madeEvent } from './made-event.ts'
import type { Shop } from './shop.ts'
import type { TroubledApps } from './troubled-apps.ts'

/** A watched number for which the carrier has no parcel. */
const MISTYPED = 'AB123456798SE'
/** A key that the relay does not know. */
const OTHER_KEY = 'key-of-the-test-system-of-the-carrier'
const WRONGLY_SIGNED = 5
/** The number of pushes whose time has a format that the carrier never uses. */
const REFORMATTED = 3
/** The number of bytes left of the push that is cut off. */
const CUT_TO = 96

/**
 * Makes realistic trouble to look at in the portal: apps refuse events, the carrier pushes bodies that are not events, somebody signs with
 * another key, and a number is mistyped. Nothing of this affects the histories of the demo's parcels.
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

/** Says what to look at in the portal. */
export const ABOUT_TROUBLE = [
  'There is trouble to look at: the webhook billing fails, warehouse refuses some',
  'events at first, old-shop is gone; pushes are in quarantine, and others had a',
  `wrong signature (Inbox, Refusals); nobody knows the parcel ${MISTYPED}.`,
  'Begin with the portal, which says what to do.',
]
