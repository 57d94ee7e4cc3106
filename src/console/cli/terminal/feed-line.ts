import type { FeedAnswer } from '../../../core/http/delivery/events.routes.ts'
import { plain } from './table.ts'

export function feedLine(event: FeedAnswer['events'][number]): string {
  const identifiers = 'identifiers' in event.parcel ? event.parcel.identifiers : []
  const who = identifiers.length === 0 ? `parcel ${event.parcel.id}` : identifiers.join(', ')
  const entry = 'entry' in event ? event.entry : null
  const what = [entry?.eventTimestamp, entry?.status, entry?.detailedStatus, entry?.location].map((text) => text ?? '')
  return plain([String(event.sequence), event.kind.padEnd(7), who, ...what].join('  ')).trimEnd()
}
