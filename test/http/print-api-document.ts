import { presentApiDocument } from '../../src/http/openapi.ts'
import { VERSION } from '../../src/package-files.ts'

process.stdout.write(presentApiDocument({ version: VERSION }))
