import { listOf, memberOf, textOf } from '../asking/ask-relay.ts'
import { plain } from './table.ts'

/** Reads a page of the feed; null: the body is not a page of the feed. */
export function readFeed(body: unknown): { readonly events: readonly unknown[]; readonly next: number } | null {
  const next = memberOf(body, 'next')
  return typeof next === 'number' ? { events: listOf(body, 'events'), next } : null
}

export function feedLine(event: unknown): string {
  const parcel = memberOf(event, 'parcel')
  const entry = memberOf(event, 'entry')
  const identifiers = listOf(parcel, 'identifiers')
  const who = identifiers.length === 0 ? `parcel ${textOf(parcel, 'id') ?? ''}` : identifiers.join(', ')
  const what = ['eventTimestamp', 'status', 'detailedStatus', 'location'].map((name) => textOf(entry, name) ?? '')
  return plain([String(memberOf(event, 'sequence')), (textOf(event, 'kind') ?? '').padEnd(7), who, ...what].join('  ')).trimEnd()
}
