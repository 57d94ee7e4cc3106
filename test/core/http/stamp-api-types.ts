import { appendFileSync } from 'node:fs'
import { stampOfTypes } from './api-types.ts'

appendFileSync('docs/openapi.d.ts', `${stampOfTypes()}\n`)
