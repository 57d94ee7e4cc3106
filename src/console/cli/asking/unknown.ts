import { suggestName } from '../../../core/domain/near-name.ts'
import type { PageAnswer } from '../../../core/http/server/answer-schemas.ts'
import type { ListedParcelAnswer } from '../../api/parcel-answers.ts'
import { type AskRelay, describeProblem, type Refusal, typedIdentifierText } from './ask-relay.ts'

/** At most this many identifiers are compared with a mistyped one. */
const CANDIDATES_MAX = 200
/** To find similar identifiers, parcels are first searched by all characters but the last two, which may be mistyped. */
const ENDING = 2
const BEGINNING_MIN = 3

/** Describes why a parcel was not found, and what to type next. For another problem, returns the relay's own description. */
export async function describeParcelProblem(ask: AskRelay, identifier: string, answer: Refusal): Promise<string> {
  if (answer.status !== 404) return `${identifier}: ${describeProblem(answer)}`
  const detail = describeProblem(answer)
  const known = detail.startsWith('No parcel has this identifier') ? 'no parcel has this identifier' : detail.replace(/\.$/, '')
  const typed = typedIdentifierText(identifier)
  const near = await nearestIdentifier(ask, typed)
  const hint = near === null ? '' : `; did you mean ${near}?`
  return `${identifier}: ${known}${hint === '' ? '.' : hint} "parcel-relay parcels ${typed.slice(0, 4)}" lists those that begin like it, "parcel-relay watch ${typed}" makes the relay poll it`
}

async function nearestIdentifier(ask: AskRelay, typed: string): Promise<string | null> {
  const folded = typed.toUpperCase()
  const beginnings = [
    folded.slice(0, Math.max(BEGINNING_MIN, folded.length - ENDING)),
    folded.slice(0, Math.max(BEGINNING_MIN, folded.length >> 1)),
  ]
  for (const beginning of beginnings) {
    const path = `/relay/parcels?limit=${CANDIDATES_MAX}&query=${encodeURIComponent(beginning)}`
    const page = await ask<PageAnswer<'parcels', ListedParcelAnswer>>('GET', path)
    const known = page.ok ? page.body.parcels.flatMap(({ identifiers }) => identifiers) : []
    const near = suggestName(folded, known)
    if (near !== null) return near
  }
  return null
}

/** Describes why a delivery was not found, and what to type next. `instead`: makes the command for all deliveries of the named endpoint. */
export async function describeDeliveryProblem(
  ask: AskRelay,
  id: string,
  answer: Refusal,
  instead: (name: string) => string,
): Promise<string> {
  if (answer.status !== 404) return `${id}: ${describeProblem(answer)}`
  const named = await ask<PageAnswer<'endpoints', { readonly name: string }>>(
    'GET',
    `/relay/endpoints?limit=1&name=${encodeURIComponent(id)}`,
  )
  const endpoint = named.ok ? named.body.endpoints[0] : undefined
  if (endpoint !== undefined)
    return `no delivery has the id ${id}, which is the name of an endpoint: "parcel-relay ${instead(quoted(endpoint.name))}"`
  return `no delivery has the id ${id}: "parcel-relay deliveries" lists the ids`
}

/** Quotes a name for a shell, if necessary. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}
