import { counted } from '../../domain/amounts.ts'
import { typedName } from '../../domain/delivery/endpoint.ts'
import { type AskRelay, listOf, memberOf, textOf } from '../asking/ask-relay.ts'
import { everyEndpoint } from './find-endpoint.ts'

const NAMED_MAX = 3

/** Adds up what endpoints never received of the parcels that were refreshed. */
export interface MissingTotal {
  /** Takes the answer to a refresh. */
  add(answer: unknown): void
  /** What was not sent to whom, and the commands that send it; `''`: nothing. */
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

/** The command that lists what an endpoint never received. */
export function missingCommand(endpoint: unknown): string {
  const [id, name] = [textOf(endpoint, 'id') ?? '', textOf(endpoint, 'name') ?? '']
  return `parcel-relay replay --endpoint ${typedName({ id, name })} --missing --dry-run`
}

function howToSend(endpoint: unknown): string {
  return `See them with ${missingCommand(endpoint)}; without --dry-run it sends them.`
}

/**
 * What to know before the first polls of new parcels find their earlier events: which endpoints will not be sent them, and the command that
 * sends them afterwards; `''`: every endpoint is sent them.
 */
export async function noteEarlierEvents(ask: AskRelay): Promise<string> {
  const left = (await everyEndpoint(ask)).filter((endpoint) => memberOf(endpoint, 'backfill') !== true)
  const [first] = left
  if (first === undefined) return ''
  const names = left.slice(0, NAMED_MAX).map((endpoint) => textOf(endpoint, 'name') ?? '')
  const more = left.length > NAMED_MAX ? ` and ${left.length - NAMED_MAX} more` : ''
  return `Earlier events, which the first polls find, are backfill and not sent to ${names.join(', ')}${more}. ${howToSend(first)}\n`
}
