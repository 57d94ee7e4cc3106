import { goodBody, json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { listOf } from '../runner/members.ts'

/** Opens a carrier that knows each parcel by the number asked for. `eventTimes`: of a parcel's entries, the newest first. */
export const carrierThatTells = (eventTimes: () => readonly string[], now = Date.now) =>
  openCarrier({
    status: (request, response) => {
      const [good] = listOf(JSON.parse(goodBody), 'statuses')
      const statuses = eventTimes().map((eventTimestamp) => ({ ...Object(good), eventTimestamp }))
      const trackingIds = [request.url?.split('/').find((part) => /^[A-Z0-9]{8,}$/.test(part))]
      json(response, 200, JSON.stringify({ statuses, trackingIds, distributionType: 'Mailbox' }), { date: new Date(now()).toUTCString() })
    },
  })
