import { presentApiDocument } from '../../../src/console/document/openapi.ts'
import { VERSION } from '../../../src/package-files.ts'

process.stdout.write(presentApiDocument({ version: VERSION }))
