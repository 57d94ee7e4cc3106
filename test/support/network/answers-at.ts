import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createInternalListener } from '../../../src/assembly/internal-listener.ts'
import { createOperationQueries } from '../../../src/console/audit/operations.routes.ts'
import { createParcelQueries } from '../../../src/console/parcels/parcel-queries.ts'
import { type Authenticate, createAuthenticate, type Visitor } from '../../../src/core/flow/admin/tokens/authenticate.ts'
import { createFeedTail, createFollowFeed } from '../../../src/core/flow/delivery/feed-tail.ts'
import { createServe, type ServeOptions } from '../../../src/core/flow/history/serve.ts'
import type { Clock, FeedSignal, Log, Meter } from '../../../src/core/flow/ports.ts'
import type { WriteSide } from '../../../src/core/flow/write-side.ts'
import { createTokens } from '../../../src/core/http/server/tokens.ts'
import { createAnswerCache, createChangeTable, createMemory } from '../../../src/core/runtime/answer-cache.ts'
import { createFeedSignal } from '../../../src/core/runtime/feed-signal.ts'
import type { ReadSide } from '../../../src/core/store/read-store.ts'
import { createManageInbox } from '../../../src/upkeep/inbox/manage-inbox.ts'
import { manageDeliveriesAt } from '../delivery/manage-deliveries-at.ts'
import { nothingServed } from '../relay/nothing-served.ts'
import { CARRIER } from './carrier-state.ts'
import { listen } from './listen.ts'
import { keyringOf } from './token-keyring.ts'

const somebody: Visitor = { network: '127.0.0.1', isThere: () => true, admit: async () => async () => undefined }

/** An answer to be compared with others. It lacks the headers that depend on time or connection, and the random id of a problem. */
export interface AnswerAt {
  readonly path: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const OF_THE_CONNECTION = new Set(['date', 'connection', 'keep-alive'])

const notAsked = () => Promise.reject(new Error('not asked'))
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
interface StoreAt {
  readonly reads: ReadSide
  readonly writes: WriteSide
  readonly clock: Clock
  /** Replaces options of `serveAt`. */
  readonly serving?: Partial<ServeOptions>
  readonly cacheBytes?: number
  readonly served?: Meter['served']
}

async function authenticateAt({ writes, clock }: StoreAt) {
  return createAuthenticate(
    {
      tokens: createTokens({ keyring: keyringOf((await writes.tokenKeys()).current), clock, audience: 'parcel-relay' }),
      verifyPassword: async (hash, password) => hash === password,
      digestPassword: (hash, password) => `${hash} ${password}`,
      rightPasswords: createMemory({ entriesMax: 10 }),
      verified: createMemory({ entriesMax: 10 }),
      clock,
    },
    {
      apps: [{ username: 'keeper', passwordHashes: ['secret'], scopes: ['status', 'admin'] }],
      tokenLifetimeMs: 3_600_000,
      sessionMaxMs: null,
      dummyHash: 'nobody',
    },
  )
}

function serveAt({ reads, writes, clock, serving, cacheBytes = 1_000_000, served = () => {} }: StoreAt) {
  return createServe(
    {
      carrier: { fetchAll: async () => ({ kind: 'unavailable', reason: 'network' }) },
      recorder: { submit: notAsked },
      reads,
      write: writes,
      cache: createAnswerCache({ bytesMax: cacheBytes, changes: createChangeTable() }),
      meter: { served },
      notFound: createMemory({ entriesMax: 10 }),
      pauses: createMemory({ entriesMax: 1000 }),
      rests: createMemory({ entriesMax: 1000 }),
      admitUnknown: async () => null,
      erasedAtMs: async () => null,
      log: silent,
      clock,
    },
    {
      languages: ['en', 'sv'],
      notFoundForMs: 60_000,
      fetchUnknown: true,
      fetchMissingLanguage: true,
      refreshOlderThanMs: null,
      ...serving,
    },
  )
}

async function listenerAt(store: StoreAt, authenticate: Authenticate, signal: FeedSignal): Promise<RequestListener> {
  const { reads, writes, clock } = store
  return createInternalListener({
    ...nothingServed,
    log: silent,
    authenticate,
    serve: serveAt(store),
    followFeed: createFollowFeed({ tail: createFeedTail({ reads, yieldToOthers: async () => {} }), signal, clock, spread: async () => {} }),
    feedFollowersMax: 10,
    relayId: '',
    manageInbox: createManageInbox({ write: writes, reads, clock, onCommitted: () => {}, work: () => {}, refusedSenders: async () => [] }),
    lookAtParcels: createParcelQueries({ reads, write: writes, clock, carrier: { state: () => CARRIER } }),
    manageDeliveries: manageDeliveriesAt({ write: writes, reads, clock }, await writes.relayId()),
    operations: createOperationQueries({ reads }),
    addressOf: () => '192.0.2.7',
    visitorOf: () => somebody,
    countFailure: async (_req, error) => error,
  })
}

/** Opens the internal listener over a store with a stopped clock and no carrier, so that answers depend only on the store. */
export async function openAnswersAt({ nowMs, ...sides }: Omit<StoreAt, 'clock'> & { readonly nowMs: number }) {
  const store = { ...sides, clock: { now: () => nowMs, monotonic: () => 0 } }
  const authenticate = await authenticateAt(store)
  const feedSignal = createFeedSignal()
  const server = createServer({ keepAliveTimeout: 72_000 }, await listenerAt(store, authenticate, feedSignal))
  const url = `http://127.0.0.1:${await listen(server)}`
  const token = await authenticate.issueToken({ username: 'keeper', password: 'secret' }, somebody)

  return {
    async get(path: string): Promise<AnswerAt> {
      const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })
      const headers = Object.fromEntries([...response.headers].filter(([name]) => !OF_THE_CONNECTION.has(name)))
      const body = (await response.text()).replace(/"instance":"[^"]*"/, '"instance":""')
      return { path, status: response.status, headers, body }
    },
    async close(): Promise<void> {
      feedSignal.close()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
