import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa from 'koa'
import { createOperatorEvents } from '../../../src/console/events/operator-events.ts'
import { NO_FORM } from '../../../src/console/portal/form.ts'
import { createAddresses } from '../../../src/console/portal/html.ts'
import type { Visit } from '../../../src/console/portal/layout.ts'
import { NOON } from '../runner/constants.ts'

/** The words of operator events without those of wings. */
export const { word: wordEvent } = createOperatorEvents([])

/** A visit of the operator to a page below a prefix. */
export function visitAt(prefix: string): Visit {
  const req = new IncomingMessage(new Socket())
  return {
    ctx: new Koa().createContext(req, new ServerResponse(req)),
    to: createAddresses(prefix),
    nowMs: NOON,
    host: 'relay',
    version: '1',
    publicOrigin: null,
    marks: {},
    isLive: true,
    person: { name: 'admin', scope: 'admin', isFromProxy: false },
    by: { kind: 'app', name: 'admin', address: null },
    param: () => '',
    query: () => '',
    form: NO_FORM,
  }
}
