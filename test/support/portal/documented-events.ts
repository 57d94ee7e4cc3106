import { readFileSync } from 'node:fs'
import { z } from 'zod'

const parameter = z.looseObject({ name: z.string(), schema: z.looseObject({ enum: z.array(z.string()).optional() }) })
const list = z.object({ get: z.object({ parameters: z.array(parameter) }) })
const { paths } = z
  .object({ paths: z.object({ '/relay/operator-events': list }) })
  .parse(JSON.parse(readFileSync('docs/openapi.json', 'utf8')))

/** The names of all operator events, as the API document lists them for its list. */
export const EVENT_NAMES = paths['/relay/operator-events'].get.parameters.find(({ name }) => name === 'event')?.schema.enum ?? []
