import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa from 'koa'
import { expect, test } from 'vitest'
import type { Situation } from '../../../src/domain/admin/verdict.ts'
import type { Past } from '../../../src/flow/admin/overview.ts'
import { createAddresses } from '../../../src/http/portal/addresses.ts'
import { carrierPage } from '../../../src/http/portal/carrier/carrier.page.ts'
import { NO_FORM } from '../../../src/http/portal/form.ts'
import { overviewPage } from '../../../src/http/portal/overview/overview.page.ts'
import type { Visit } from '../../../src/http/portal/page-route.ts'
import { CARRIER } from '../../support/carrier-state.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const NO_TRAFFIC = { fromMs: [], pushes: [], missed: [], polls: [], attempts: [] }
const silent: Situation & Past = {
  notReady: [],
  counts: { parcels: 3, watched: 2, overdue: 0, quarantined: 0 },
  carrier: CARRIER,
  pushes: {
    health: 'silent',
    loss: 0,
    lastPushAtMs: NOW - 3_600_000,
    missedSincePush: 7,
    silence: null,
    missed: { count: 7, sinceMs: 0, lastFoundAtMs: null },
  },
  endpoints: [],
  backlogs: new Map(),
  failures: new Map(),
  replicas: [],
  happened: [],
  traffic: { hours: NO_TRAFFIC, days: NO_TRAFFIC, calls: {} },
}

function visitAt(prefix: string): Visit {
  const req = new IncomingMessage(new Socket())
  return {
    ctx: new Koa().createContext(req, new ServerResponse(req)),
    to: createAddresses(prefix),
    nowMs: NOW,
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

test.each(['', '/relay'])('the evidence of a silence is a heading that the overview links to, prefix %o', (prefix) => {
  expect(overviewPage(visitAt(prefix), silent)).toContain(`<a href="${prefix}/carrier#pushes" class="btn">Show the evidence</a>`)
  expect(carrierPage(visitAt(prefix), silent)).toContain('<h2 id="pushes">Pushes: the evidence</h2>')
})
