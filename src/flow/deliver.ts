import { countAttempt, freshHealth, healthAfter, settle } from '../domain/delivery.ts'
import { keysAfterUse } from '../domain/endpoint-keys.ts'
import type { OperatorEvent } from '../domain/operator-event.ts'
import { backfillSpan } from '../domain/told.ts'
import { createEditEndpoints, type EditEndpoints } from './edit-endpoints.ts'
import { handOut } from './hand-out.ts'
import type {
  ConfiguredEndpoint,
  DeliveryRules,
  DeliveryTurn,
  EndpointNotice,
  EndpointState,
  Settled,
  SettledAttempt,
  WriteSide,
  WriteStore,
  WriteTx,
} from './ports.ts'
import { nextOf, startAt, whyNot } from './start-of-endpoint.ts'
import { syncOperator, tellOperator } from './tell-operator.ts'

/** Read anew at every turn. */
export type DeliverOptions = DeliveryRules

/** A shorter trouble is nobody's business when it is over. */
const WORTH_TELLING_MS = 60 * 60 * 1000

/** The verbs that write down what became of deliveries and hand out the next ones (DOMAIN 7). */
export function createDeliver(
  store: WriteStore,
  options: DeliverOptions,
): Pick<WriteSide, 'deliveryTurn' | 'syncEndpoints' | 'tellOperator' | keyof EditEndpoints> {
  return {
    ...createEditEndpoints(store),

    deliveryTurn: (turn) =>
      store.transaction(async (tx) => {
        const { states, notices } = await settleAll(tx, turn, options)
        return { endpoints: states, notices, ...(await handOut(tx, { states, turn }, options)) }
      }),

    tellOperator: (event, nowMs) => store.transaction((tx) => tellOperator(tx, event, nowMs)),

    syncEndpoints: (configured, nowMs, operatorUrl) =>
      store.transaction(async (tx) => {
        const standing = await tx.listEndpoints()
        for (const endpoint of configured) await saveConfigured(tx, standing, endpoint)
        const names = new Set(configured.map(({ name }) => name))
        for (const { endpoint, origin } of standing) {
          if (origin === 'config' && !names.has(endpoint.name)) await tx.removeEndpoint(endpoint.id, nowMs)
        }
        await syncOperator(tx, operatorUrl, nowMs)
      }),
  }
}

/** Writes down what ended; gives how all endpoints stand after it, and what operators should hear of. */
async function settleAll(
  tx: WriteTx,
  turn: DeliveryTurn,
  options: DeliverOptions,
): Promise<{ readonly states: readonly EndpointState[]; readonly notices: readonly EndpointNotice[] }> {
  const before = await tx.listEndpoints()
  const states = [...before]
  const places = new Map(before.map(({ endpoint }, place) => [endpoint.id, place]))
  const settled: Settled[] = []
  const notices: EndpointNotice[] = []
  for (const attempt of turn.settled) {
    const place = places.get(attempt.endpointId)
    const state = place === undefined ? undefined : states[place]
    // Removed while it was attempted: cancelled, whatever came of it.
    if (place === undefined || state === undefined) continue
    const one = settleOne(state, attempt, turn.nowMs, options)
    const after = stateAfter(state, one, turn.nowMs)
    settled.push(one)
    states[place] = after
    if (after !== state) notices.push(...noticesOf(state, after, turn.nowMs))
  }
  tx.saveSettlements(settled, turn.nowMs)
  for (const [place, state] of states.entries()) {
    const known = before[place]
    if (known?.disabled !== state.disabled || known.keys !== state.keys) await tx.saveEndpoint(state)
    else if (known.health !== state.health) tx.saveHealth(state.endpoint.id, state.health)
  }
  // What befalls the operator's own endpoint is in the log: it could not be told there.
  const isOperator = ({ endpointId }: EndpointNotice) => states[places.get(endpointId) ?? -1]?.origin === 'operator'
  for (const notice of notices.filter((one) => !isOperator(one))) await tellOperator(tx, operatorEvent(notice), turn.nowMs)
  return { states, notices }
}

/** What an attempt makes of its delivery. */
function settleOne(state: EndpointState, attempt: SettledAttempt, nowMs: number, options: DeliverOptions): Settled {
  const { result, random } = attempt
  const counted = countAttempt(attempt, result, nowMs)
  const { scheduleMs } = state.endpoint
  const policy = scheduleMs === null ? options.policy : { ...options.policy, scheduleMs }
  const settlement = settle(counted, result, nowMs, policy, state.health, random)
  return { ...attempt, ...counted, settlement }
}

/** How its endpoint stands after it. */
function stateAfter(state: EndpointState, { result, settlement }: Settled, nowMs: number): EndpointState {
  const health = healthAfter(state.health, result, nowMs)
  const disabled = settlement.state === 'held' ? (state.disabled ?? settlement.reason) : state.disabled
  const used = result.kind === 'accepted' ? result.byNextKey : undefined
  const keys = state.keys === null || used === undefined ? state.keys : keysAfterUse(state.keys, used)
  return health === state.health && disabled === state.disabled && keys === state.keys ? state : { ...state, health, disabled, keys }
}

function noticesOf(before: EndpointState, after: EndpointState, nowMs: number): readonly EndpointNotice[] {
  const endpoint = after.endpoint.name
  const endpointId = after.endpoint.id
  if (before.disabled === null && after.disabled === 'gone') return [{ endpoint, endpointId, kind: 'disabled_gone' }]
  if (before.disabled === null && after.disabled === 'failing') return [{ endpoint, endpointId, kind: 'disabled_failing' }]
  const { failingSinceMs } = before.health
  const recovered = failingSinceMs !== null && after.health.failingSinceMs === null && nowMs - failingSinceMs >= WORTH_TELLING_MS
  return recovered ? [{ endpoint, endpointId, kind: 'recovered' }] : []
}

function operatorEvent({ endpoint: name, endpointId: id, kind }: EndpointNotice): OperatorEvent {
  const endpoint = { id, name }
  if (kind === 'recovered') return { event: 'endpoint_recovered', endpoint }
  return { event: 'endpoint_disabled', endpoint, because: kind === 'disabled_gone' ? 'gone' : 'failing' }
}

async function saveConfigured(tx: WriteTx, standing: readonly EndpointState[], configured: ConfiguredEndpoint): Promise<void> {
  const { from = null, ...endpoint } = configured
  const known = standing.find((state) => state.endpoint.name === endpoint.name)
  if (known !== undefined && known.origin !== 'config') {
    throw new Error(`endpoints: "${endpoint.name}" is the name of an endpoint that the config file does not define`)
  }
  const id = known?.endpoint.id ?? ''
  const byOrder = known?.disabled === 'operator' ? null : (known?.disabled ?? null)
  const disabled = endpoint.enabled ? byOrder : 'operator'
  const start = known === undefined ? await startAt(tx, from) : { kind: 'ok' as const, queuedTo: known.queuedTo }
  if (start.kind !== 'ok') throw new Error(`endpoints: "${endpoint.name}" cannot start at ${from}: ${whyNot(start)}`)
  const { queuedTo } = start
  const health = known?.health ?? freshHealth
  const backfilled = backfillSpan(known?.backfilled ?? null, endpoint.backfill, await nextOf(tx, queuedTo))
  await tx.saveEndpoint({ endpoint: { ...endpoint, id }, origin: 'config', disabled, health, keys: null, queuedTo, backfilled })
}
