import type { AttemptResult } from '../../../domain/delivery/delivery.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { Relay } from '../../relay.ts'

/** Logs each change of an endpoint's state. Logs the failed attempts of an endpoint at most once a minute. */
export type EndpointLog = ReturnType<typeof createEndpointLog>

type Standing = 'active' | 'failing' | 'disabled' | 'gone' | 'given up' | 'unnamed'

const EVERY_MS = 60_000

const MESSAGES: Readonly<Record<Exclude<Standing, 'active'>, string>> = {
  failing: 'an endpoint is failing: it is sent one delivery at a time until one succeeds',
  disabled: 'an endpoint is disabled; everything for it waits',
  gone: 'an endpoint answered 410 and is disabled; everything for it waits',
  'given up': 'an endpoint failed for 120 h and is disabled; everything for it waits',
  unnamed:
    'no config names an endpoint any more, so everything for it waits; unless a config names it again, it is removed after delivery.removeAfter',
}

/** The list of endpoints before the first update. */
const NONE: readonly EndpointState[] = []

const STILL_FAILING = 'an endpoint has been failing since before this start: it is sent one delivery at a time until one succeeds'

export function createEndpointLog({ log, clock }: Pick<Relay, 'log' | 'clock'>) {
  const standings = new Map<string, Standing>()
  const failures = new Map<string, { count: number; loggedAtMs: number }>()
  let known = NONE

  return {
    /** Logs which endpoints have changed their state. */
    update(states: readonly EndpointState[]): void {
      if (states === known) return
      const isFirst = known === NONE
      known = states
      for (const state of states) {
        const { id, name } = state.endpoint
        const before = standings.get(id) ?? 'active'
        const now = standingOf(state)
        if (now === before) continue
        standings.set(id, now)
        if (now === 'active') log.info({ endpoint: name, before }, 'an endpoint is sent events again, including all that waited')
        else if (isFirst && now === 'failing') log.warn({ endpoint: name }, STILL_FAILING)
        else log.warn({ endpoint: name, before }, MESSAGES[now])
      }
      const ids = new Set(states.map(({ endpoint }) => endpoint.id))
      const names = new Set(states.map(({ endpoint }) => endpoint.name))
      for (const id of standings.keys()) if (!ids.has(id)) standings.delete(id)
      for (const name of failures.keys()) if (!names.has(name)) failures.delete(name)
    },
    /** Counts a failed attempt for the endpoint with this name, and logs the count at most once a minute. */
    attempted(endpoint: string, result: AttemptResult): void {
      if (result.kind === 'accepted' || (result.kind === 'failed' && result.reason === 'interrupted')) return
      const nowMs = clock.monotonic()
      const failed = failures.get(endpoint) ?? { count: 0, loggedAtMs: Number.NEGATIVE_INFINITY }
      failures.set(endpoint, failed)
      failed.count += 1
      if (nowMs - failed.loggedAtMs < EVERY_MS) return
      log.warn({ endpoint, count: failed.count, last: causeOf(result) }, 'attempts to deliver to an endpoint failed')
      failed.count = 0
      failed.loggedAtMs = nowMs
    },
  }
}

function standingOf({ disabled, health }: EndpointState): Standing {
  if (disabled === 'operator') return 'disabled'
  if (disabled === 'gone') return 'gone'
  if (disabled === 'failing') return 'given up'
  if (disabled === 'unnamed') return 'unnamed'
  return health.probing === null ? 'active' : 'failing'
}

function causeOf(result: Exclude<AttemptResult, { readonly kind: 'accepted' }>): string {
  return result.kind === 'rejected' ? `status ${result.status}` : result.reason
}
