import { equal } from 'node:assert/strict'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { trackingId } from '../load/event.ts'
import { median } from '../load/percentiles.ts'
import { endpointNames } from '../relay/receivers.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { OPERATOR } from '../servers/relay-config.ts'
import { ageStore } from '../stores/aged.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, Figure, SuiteReport } from '../suite.ts'

const MUST_MS = 100

/** A relay whose only endpoint refuses connections, as in a night in which somebody opens the portal. */
const SECTIONS = {
  endpoints: endpointNames(1).map((name) => ({
    name,
    url: 'http://127.0.0.1:9/',
    sharedKey: 'a-key-that-signs-for-the-bench-only',
  })),
  delivery: { allowNetworks: ['127.0.0.0/8'] },
  apps: [OPERATOR.app],
}

type Ask = (path: string) => Promise<{ readonly text: string; readonly ms: number }>

/** Measures how long each page of the portal takes, from the request to the last byte, for one person at a time. */
export async function portal({ settings, folder, relayEntry, say }: Bench): Promise<SuiteReport> {
  const storePath = join(folder, 'relay.db')
  await copyPrefilledStore(settings.scale.uniformParcels, storePath, say, endpointNames(1))
  const stored = ageStore(storePath)
  say(
    Object.entries(stored)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  )
  const relay = await startRelay(relayEntry, folder, { storePath, sections: SECTIONS })
  try {
    const ask = await openPortal(relay)
    const paths = await pathsOf(ask)
    const taken = new Map<string, number[]>(paths.map((path) => [path, []]))
    for (let round = 0; round <= settings.rounds; round++) {
      for (const path of paths) taken.get(path)?.push((await ask(path)).ms)
      say(round === 0 ? 'each page once' : `round ${round}`)
    }
    const pages = [...taken].map(([path, [first = Number.NaN, ...rounds]]) => ({ path: withoutNumbers(path), first, rounds }))
    return {
      figures: pages.map(({ path, rounds }) => pageFigure(path, rounds)),
      observations: pages.map(({ path, first, rounds }) => ({
        name: `portal: ${path}`,
        facts: { 'first ms': first.toFixed(1), 'median ms': median(rounds).toFixed(1) },
      })),
    }
  } finally {
    await relay.stop()
  }
}

function pageFigure(path: string, rounds: readonly number[]): Figure {
  return figure(`portal: ${path}`, rounds, { unit: 'ms', better: 'lower', must: MUST_MS })
}

/** Removes what differs from run to run. */
function withoutNumbers(path: string): string {
  return path.replace(/cursor=[^&]*/, 'cursor=...').replaceAll(/\d{3,}/g, '...')
}

/** Logs in as the operator. Later requests use the cookie. */
async function openPortal({ internalUrl }: RelayServer): Promise<Ask> {
  const answer = await fetch(`${internalUrl}/login`, {
    method: 'POST',
    body: new URLSearchParams({ username: OPERATOR.app.username, password: OPERATOR.password }),
    headers: { 'sec-fetch-site': 'same-origin' },
    redirect: 'manual',
  })
  const cookie = answer.headers
    .getSetCookie()
    .map((set) => set.split(';')[0] ?? '')
    .join('; ')
  return async (path) => {
    const startMs = performance.now()
    const response = await fetch(`${internalUrl}${path}`, { headers: { cookie }, redirect: 'manual' })
    const text = await response.text()
    equal(response.status, 200, path)
    return { text, ms: performance.now() - startMs }
  }
}

/** Returns the path of every page, and of the lists that an operator needs at night: by state, webhook and time, and on later pages. */
async function pathsOf(ask: Ask): Promise<readonly string[]> {
  const parcel = trackingId(10)
  const lists = [
    '/parcels',
    '/parcels?status=TerminalArrived',
    '/parcels?stopped=stale',
    `/parcels?query=${parcel.slice(0, 12)}`,
    '/deliveries',
    '/deliveries?state=dead',
    '/deliveries?state=delivered',
    '/deliveries?state=cancelled',
    `/deliveries?parcel=${parcel}`,
    '/deliveries?from=2020-01-01T00:00',
    '/inbox',
    '/inbox?state=all',
    '/inbox?state=all&from=2026-03-01T10:00&to=2026-03-01T11:00',
    '/inbox?reason=schema',
    `/inbox?state=all&parcel=${parcel}`,
  ]
  const found: string[] = ['/', ...lists, `/parcels/${parcel}`]
  for (const path of ['/webhooks', '/deliveries', '/inbox', '/parcels']) {
    const { text } = await ask(path)
    const links = [...text.matchAll(/ href="([^"]*)"/g)].map(([, to = '']) => to.replaceAll('&amp;', '&'))
    const first = path === '/parcels' ? undefined : links.find((to) => new RegExp(`^${path}/\\d+$`).test(to))
    found.push(...[first, links.find((to) => /[?&]cursor=/.test(to))].flatMap((to) => to ?? []))
  }
  const webhook = found.find((path) => path.startsWith('/webhooks/')) ?? fail()
  found.push('/webhooks', `/deliveries?endpoint=${webhook.replace('/webhooks/', '')}&state=retrying`, `${webhook}/edit`)
  return [...found, '/carrier', '/settings', '/events', '/docs', '/docs/operating']
}

function fail(): never {
  throw new Error('the portal lists no webhook')
}
