import { suggestName } from '../../domain/near-name.ts'
import { type AskRelay, describeProblem, listOf, textOf } from '../asking/ask-relay.ts'

/** An endpoint as `GET /relay/endpoints` shows it. */
export interface FoundEndpoint {
  readonly id: string
  readonly name: string
  readonly body: unknown
}

/** Finds an endpoint by its name or, if no endpoint has this name, by its id. If there is none, throws an error that suggests a similar name. */
export async function findEndpoint(ask: AskRelay, nameOrId: string): Promise<FoundEndpoint> {
  const named = await ask('GET', `/relay/endpoints?limit=1&name=${encodeURIComponent(nameOrId)}`)
  if (named.status !== 200) throw new Error(describeProblem(named))
  const [first] = listOf(named.body, 'endpoints')
  if (first !== undefined) return asFound(first)
  if (/^\d{1,15}$/.test(nameOrId)) {
    const byId = await ask('GET', `/relay/endpoints/${nameOrId}`)
    if (byId.status === 200) return asFound(byId.body)
  }
  const names = (await everyEndpoint(ask)).map((endpoint) => textOf(endpoint, 'name') ?? '')
  const near = suggestName(nameOrId, names)
  const hint =
    near !== null
      ? `; did you mean ${near}? "parcel-relay endpoints" lists all`
      : names.length === 0
        ? '; there is none yet: "parcel-relay endpoints add NAME URL" adds one'
        : `; there are ${shown(names)}`
  throw new Error(`no endpoint has the name or id ${nameOrId}${hint}`)
}

export async function everyEndpoint(ask: AskRelay): Promise<readonly unknown[]> {
  const found: unknown[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = await ask('GET', `/relay/endpoints?limit=500${cursor === '' ? '' : `&cursor=${cursor}`}`)
    if (page.status !== 200) throw new Error(describeProblem(page))
    found.push(...listOf(page.body, 'endpoints'))
    cursor = textOf(page.body, 'next')
  }
  return found
}

const NAMES_SHOWN = 10

function shown(names: readonly string[]): string {
  return `${names.slice(0, NAMES_SHOWN).join(', ')}${names.length > NAMES_SHOWN ? ', ...' : ''}`
}

function asFound(body: unknown): FoundEndpoint {
  return { id: textOf(body, 'id') ?? '', name: textOf(body, 'name') ?? '', body }
}
