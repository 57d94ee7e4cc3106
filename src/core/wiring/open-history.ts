import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { hash, verify } from '@node-rs/argon2'
import type { Config } from '../config/config.ts'
import { AppError } from '../domain/errors.ts'
import type { Rest } from '../domain/instant.ts'
import { spentUntilMs } from '../domain/polling/call-budget.ts'
import { describeNotAsked, describeUnusable } from '../domain/polling/carrier-answer.ts'
import { type AuthenticatePorts, createAuthenticate, createTokenKeyring, type VerifiedToken } from '../flow/admin/tokens/authenticate.ts'
import type { Pause } from '../flow/history/fetch-on-miss.ts'
import { createServe } from '../flow/history/serve.ts'
import { createRefresh } from '../flow/polling/refresh.ts'
import { createSharedFlight } from '../flow/shared-flight.ts'
import { createPerMinute } from '../http/server/authorize.ts'
import { createTokens } from '../http/server/tokens.ts'
import { createAnswerCache, createMemory } from '../runtime/answer-cache.ts'
import { createFairQueue } from '../runtime/fair-queue.ts'
import { startRepeating } from '../runtime/schedule.ts'
import { languagesOf } from './carrier.ts'
import { firstWrite } from './opened-storage.ts'
import type { Relay } from './relay.ts'

const REMEMBERED = { tokens: 10_000, sessions: 1000, rightPasswords: 10_000, notFound: 100_000, pauses: 100_000, rests: 100_000 }

type AnswerParts = Pick<Relay, 'carrier' | 'recorder' | 'reads' | 'write' | 'meter' | 'clock' | 'log'>
type HistoryParts = AnswerParts & Pick<Relay, 'changes' | 'shared' | 'replicas'>

export type History = ReturnType<typeof openHistory>

/** Assembles the part that answers questions about parcels: from the store or, if the store has no answer, from the carrier. */
export function openHistory(
  config: Config,
  { carrier, recorder, reads, write, meter, clock, log, changes, shared, replicas }: HistoryParts,
) {
  const flights = shared?.flights
  const together =
    flights === undefined ? {} : { together: createSharedFlight({ flights, pause: (ms) => pause(ms, undefined, { ref: false }) }) }
  const ports = { carrier, recorder, reads, write, meter, clock, log, ...together }
  const cache = createAnswerCache({ bytesMax: config.limits.cacheBytes, changes })
  const spent = () => spentUntilMs(carrier.state().budget, clock.now())
  const serve = createServe(
    {
      ...ports,
      cache,
      notFound: createMemory<number>({ entriesMax: REMEMBERED.notFound }),
      pauses: createMemory<Pause>({ entriesMax: REMEMBERED.pauses }),
      rests: createMemory<Rest>({ entriesMax: REMEMBERED.rests }),
      admitUnknown: createPerMinute(config.limits.unknownPerMinute),
      spentUntilMs: spent,
      erasedAtMs: (identifier) => write.erasedAtMs({ identifier, nowMs: clock.now() }),
    },
    { languages: config.upstream.languages, ...config.serve },
  )
  return {
    ports,
    cache,
    serve,
    whyUnusable: (sinceMs: number) => describeUnusable(carrier.state(), sinceMs),
    whyNotAsked: () => describeNotAsked(carrier.state(), spent()),
    refresh: createRefresh(
      { ...ports, lapse: replicas.signal, failsSinceMs: () => carrier.state().breaker.sinceMs },
      { languages: languagesOf(config) },
    ),
  }
}

/**
 * How many logins may wait for their password check, in all and from one network. A check takes some 30 ms. These limits let many apps of one
 * network start at once, and yet no app waits long.
 */
const LOGINS = { waitingMax: 256, waitingPerKeyMax: 64 }
const LOGINS_RETRY_AFTER_MS = 1000

/** How long it may take until a replica notices that another one has made all tokens invalid. */
const LOOK_AT_TOKEN_KEYS_MS = 10_000

/** How long a person who does not use the portal stays logged in. */
export const SESSION_IDLE_MS = 60 * 60_000
const SESSION = { idleMs: SESSION_IDLE_MS, maxMs: 12 * 60 * 60_000 }

/**
 * Authenticates the apps of the config: programs by bearer tokens, people by sessions of the portal. Password checks use at most one thread
 * of the pool, so that a flood of logins leaves the other threads free.
 */
export async function openAuthentication(
  config: Config,
  { clock, path, write, reads, restores, closing, log }: Pick<Relay, 'clock' | 'path' | 'write' | 'reads' | 'restores' | 'closing' | 'log'>,
) {
  const passwordKey = randomBytes(32)
  const logins = createFairQueue({
    ...LOGINS,
    refuse: () =>
      new AppError('too_many_requests', 'Too many logins wait to be checked. Try again later.', { retryAfterMs: LOGINS_RETRY_AFTER_MS }),
  })
  const keyring = createTokenKeyring(await firstWrite(path, write.tokenKeys()), {
    write,
    clock,
    pause,
    isShared: config.store.engine === 'postgres',
  })
  if (config.store.engine === 'postgres') {
    const looking = startRepeating(
      () => keyring.refresh().catch((err: unknown) => log.debug({ err }, 'cannot read the keys of tokens; the relay tries again')),
      LOOK_AT_TOKEN_KEYS_MS,
    )
    closing.add(() => looking.stop())
  }
  const ports: Omit<AuthenticatePorts, 'tokens' | 'verified'> = {
    verifyPassword: (phc, password, { network, isThere }) => logins.run(network, () => verify(phc, password), isThere),
    digestPassword: (phc, password) => createHmac('sha256', passwordKey).update(`${phc} ${password}`).digest('base64'),
    rightPasswords: createMemory<string>({ entriesMax: REMEMBERED.rightPasswords }),
    clock,
  }
  const options = { apps: appsOf(config), dummyHash: await hash('nobody', { memoryCost: 19_456, timeCost: 2, parallelism: 1 }) }
  const authenticate = createAuthenticate(
    {
      ...ports,
      tokens: createTokens({ keyring, clock, audience: 'parcel-relay' }),
      verified: createMemory<VerifiedToken>({ entriesMax: REMEMBERED.tokens }),
    },
    { ...options, tokenLifetimeMs: config.token.lifetimeMs, sessionMaxMs: null },
  )
  const sessions = createAuthenticate(
    {
      ...ports,
      tokens: createTokens({ keyring, clock, audience: 'parcel-relay-portal' }),
      verified: createMemory<VerifiedToken>({ entriesMax: REMEMBERED.sessions }),
      ended: {
        makeId: randomUUID,
        end: write.endSession,
        among: reads.endedAmong,
        // A restore recorded by a clock that was ahead must not end the sessions of a year.
        beforeMs: Math.min(restores.at(-1)?.atMs ?? 0, clock.now()),
      },
    },
    { ...options, tokenLifetimeMs: SESSION.idleMs, sessionMaxMs: SESSION.maxMs },
  )
  return { authenticate, sessions, keyring }
}

export function appsOf(config: Config) {
  return config.apps.map(({ passwordHash, ...app }) => ({ ...app, passwordHashes: passwordHash.map((hash) => hash.reveal()) }))
}
