import { readFileSync } from 'node:fs'
import { z } from 'zod'

const names = z.looseObject({ enum: z.array(z.string()) })
const parameter = z.looseObject({ name: z.string(), schema: z.unknown() })
const problem = z.object({ properties: z.object({ kind: names }) })
const overview = z.object({ properties: z.object({ problems: z.object({ items: problem }) }) })
const { paths, components } = z
  .object({
    paths: z.object({ '/relay/operator-events': z.object({ get: z.object({ parameters: z.array(parameter) }) }) }),
    components: z.object({ schemas: z.object({ Overview: overview }) }),
  })
  .parse(JSON.parse(readFileSync('docs/openapi.json', 'utf8')))

const { parameters } = paths['/relay/operator-events'].get

/** The names of all operator events, as the API document has them. */
export const EVENT_NAMES = names.parse(parameters.find(({ name }) => name === 'event')?.schema).enum
/** The kinds of all problems of the overview, as the API document has them. */
export const PROBLEM_KINDS = components.schemas.Overview.properties.problems.items.properties.kind.enum
