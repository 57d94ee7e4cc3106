import { counted } from '../../domain/amounts.ts'
import { typedName } from '../../domain/delivery/endpoint.ts'
import { type AskRelay, listOf, memberOf, textOf } from '../asking/ask-relay.ts'
import { everyEndpoint } from './find-endpoint.ts'

const NAMED_MAX = 3

/** Counts, for each endpoint, the events of refreshed parcels that it never received. */
export interface MissingTotal {
  add(answer: unknown): void
  /** Says how many events were not sent to which endpoint, and which command sends them; empty: none are missing. */
  text(): string
}

export function createMissingTotal(): MissingTotal {
  const totals = new Map<string, { readonly endpoint: unknown; count: number }>()
  return {
    add(answer) {
      for (const one of listOf(answer, 'missing')) {
        const endpoint = memberOf(one, 'endpoint')
        const total = totals.get(textOf(endpoint, 'id') ?? '') ?? { endpoint, count: 0 }
        total.count += Number(memberOf(one, 'count'))
        totals.set(textOf(endpoint, 'id') ?? '', total)
      }
    },
    text() {
      const shown = [...totals.values()].slice(0, NAMED_MAX)
      const lines = shown.map(({ endpoint, count }) => {
        const events = counted(count, 'event was', 'events were')
        return `${events} recorded as backfill and not sent to ${textOf(endpoint, 'name') ?? ''}. ${howToSend(endpoint)}\n`
      })
      return `${lines.join('')}${othersIn(totals.size - shown.length)}`
    },
  }
}

function othersIn(count: number): string {
  return count === 0 ? '' : `${counted(count, 'other endpoint is', 'other endpoints are')} missing some too: parcel-relay status.\n`
}

/** Returns the command that lists the events that an endpoint never received. */
export function missingCommand(endpoint: unknown): string {
  const [id, name] = [textOf(endpoint, 'id') ?? '', textOf(endpoint, 'name') ?? '']
  return `parcel-relay replay --endpoint ${typedName({ id, name })} --missing --dry-run`
}

function howToSend(endpoint: unknown): string {
  return `See them with ${missingCommand(endpoint)}; without --dry-run it sends them.`
}

/**
 * The first polls of new parcels find earlier events. Returns a note that names the endpoints to which these events will not be sent, and the command
 * that sends them later; empty: all endpoints get them.
 */
export async function noteEarlierEvents(ask: AskRelay): Promise<string> {
  const left = (await everyEndpoint(ask)).filter((endpoint) => memberOf(endpoint, 'backfill') !== true)
  const [first] = left
  if (first === undefined) return ''
  const names = left.slice(0, NAMED_MAX).map((endpoint) => textOf(endpoint, 'name') ?? '')
  const more = left.length > NAMED_MAX ? ` and ${left.length - NAMED_MAX} more` : ''
  return `Earlier events, which the first polls find, are backfill and not sent to ${names.join(', ')}${more}. ${howToSend(first)}\n`
}
