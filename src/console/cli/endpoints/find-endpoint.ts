import { suggestName } from '../../../core/domain/near-name.ts'
import type { EndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import type { PageAnswer } from '../../../core/http/server/answer-schemas.ts'
import { type AskRelay, describeProblem } from '../asking/ask-relay.ts'
import { listUpTo } from '../asking/paged-list.ts'

/** Finds an endpoint by its name or, if no endpoint has this name, by its id. If there is none, throws an error that suggests a similar name. */
export async function findEndpoint(ask: AskRelay, nameOrId: string): Promise<EndpointAnswer> {
  const named = await ask<PageAnswer<'endpoints', EndpointAnswer>>('GET', `/relay/endpoints?limit=1&name=${encodeURIComponent(nameOrId)}`)
  if (!named.ok) throw new Error(describeProblem(named))
  const [first] = named.body.endpoints
  if (first !== undefined) return first
  if (/^\d{1,15}$/.test(nameOrId)) {
    const byId = await ask<EndpointAnswer>('GET', `/relay/endpoints/${nameOrId}`)
    if (byId.ok) return byId.body
  }
  const names = (await everyEndpoint(ask)).map(({ name }) => name)
  const near = suggestName(nameOrId, names)
  const hint =
    near !== null
      ? `; did you mean ${near}? "parcel-relay endpoints" lists all`
      : names.length === 0
        ? '; there is none yet: "parcel-relay endpoints add NAME URL" adds one'
        : `; there are ${shown(names)}`
  throw new Error(`no endpoint has the name or id ${nameOrId}${hint}`)
}

export async function everyEndpoint(ask: AskRelay): Promise<readonly EndpointAnswer[]> {
  const asked = { path: '/relay/endpoints', name: 'endpoints', limit: Infinity, query: {} }
  return (await listUpTo<EndpointAnswer>(ask, asked)).items
}

const NAMES_SHOWN = 10

function shown(names: readonly string[]): string {
  return `${names.slice(0, NAMES_SHOWN).join(', ')}${names.length > NAMES_SHOWN ? ', ...' : ''}`
}
