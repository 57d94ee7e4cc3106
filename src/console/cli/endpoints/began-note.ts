import type { AskRelay } from '../asking/ask-relay.ts'
import { everyEndpoint } from './find-endpoint.ts'

const NAMED_MAX = 10

/** Says which endpoints are sent what the first polls of new parcels find, and since when; empty: there are no endpoints. */
export async function noteBegan(ask: AskRelay): Promise<string> {
  const endpoints = await everyEndpoint(ask)
  if (endpoints.length === 0) return ''
  const lines = endpoints.slice(0, NAMED_MAX).map(({ name, state, backfill, beganAt }) => {
    const since = backfill ? 'at any time (backfill)' : `since ${beganAt}`
    return state === 'disabled'
      ? `  ${name} (disabled): what happened ${since}, once it is enabled\n`
      : `  ${name}: what happened ${since}\n`
  })
  const more = endpoints.length - lines.length
  return `Endpoints are sent what the first polls find:\n${lines.join('')}${more === 0 ? '' : `  and ${more} more: parcel-relay endpoints\n`}`
}
