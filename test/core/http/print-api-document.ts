import { presentApiDocument } from '../../../src/console/document/openapi.ts'
import { VERSION } from '../../../src/package-files.ts'
import { CAPABILITIES, OPERATOR_EVENTS } from '../../support/relay/routes.ts'

process.stdout.write(presentApiDocument({ version: VERSION, capabilities: CAPABILITIES, events: OPERATOR_EVENTS }))
