import { countAttempt, freshHealth, healthAfter, settle } from '../domain/delivery.ts'
import type { Endpoint } from '../domain/endpoint.ts'
import type { OperatorEvent } from '../domain/operator-event.ts'
import { createEditEndpoints, type EditEndpoints } from './edit-endpoints.ts'
import type {
  ConfiguredEndpoint,
  DeliveryRules,
  DeliveryTurn,
  DeliveryTurnReport,
  EndpointNotice,
  EndpointState,
  SettledAttempt,
  WriteSide,
  WriteStore,
  WriteTx,
} from './ports.ts'
import { startAt, whyNot } from './start-of-endpoint.ts'
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
        const states = new Map((await tx.listEndpoints()).map((state) => [state.endpoint.id, state]))
        const changed = new Set<string>()
        const notices: EndpointNotice[] = []
        for (const attempt of turn.settled) {
          const state = states.get(attempt.endpointId)
          // Removed while it was attempted: cancelled, whatever came of it.
          if (state === undefined) continue
          const after = await settleOne(tx, state, attempt, turn.nowMs, options)
          states.set(attempt.endpointId, after)
          if (after !== state) changed.add(attempt.endpointId)
          notices.push(...noticesOf(state, after, turn.nowMs))
        }
        for (const id of changed) {
          const state = states.get(id)
          if (state !== undefined) await tx.saveEndpoint(state)
        }
        // What befalls the operator's own endpoint is in the log: it could not be told there.
        const isOperator = ({ endpointId }: EndpointNotice) => states.get(endpointId)?.origin === 'operator'
        for (const notice of notices.filter((one) => !isOperator(one))) await tellOperator(tx, operatorEvent(notice), turn.nowMs)
        return { ...(await handOut(tx, [...states.values()], turn, options)), notices }
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

/** Writes an attempt and its delivery's fate down; gives how the endpoint stands after it. */
async function settleOne(
  tx: WriteTx,
  state: EndpointState,
  attempt: SettledAttempt,
  nowMs: number,
  options: DeliverOptions,
): Promise<EndpointState> {
  const { result, random } = attempt
  const delivery = { ...attempt, ...countAttempt(attempt, result, nowMs) }
  const policy = { ...options.policy, scheduleMs: state.endpoint.scheduleMs ?? options.policy.scheduleMs }
  const settlement = settle(delivery, result, nowMs, policy, state.health, random)
  await tx.saveAttempt({ deliveryId: attempt.deliveryId, atMs: attempt.atMs, result })
  await tx.saveSettlement({ delivery, settlement, nowMs })
  const health = healthAfter(state.health, result, nowMs)
  const disabled = settlement.state === 'held' ? (state.disabled ?? settlement.reason) : state.disabled
  return health === state.health && disabled === state.disabled ? state : { ...state, health, disabled }
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

/** Claims what is due for every enabled endpoint with room, and says when to look again. */
async function handOut(
  tx: WriteTx,
  states: readonly EndpointState[],
  turn: DeliveryTurn,
  { perEndpoint, leaseMs }: DeliverOptions,
): Promise<Omit<DeliveryTurnReport, 'notices'>> {
  const claimed = []
  let nextAtMs: number | null = null
  for (const { endpoint, disabled } of states) {
    if (disabled !== null) continue
    const room = Math.min((endpoint.concurrency ?? perEndpoint) - (turn.inFlight[endpoint.id] ?? 0), allowanceOf(endpoint, turn))
    const request = { endpointId: endpoint.id, nowMs: turn.nowMs, limit: room, leaseUntilMs: turn.nowMs + leaseMs }
    const mine = room > 0 ? await tx.claimDeliveries(request) : []
    claimed.push(...mine)
    // Without room it is the end of an attempt that calls for the next look.
    const atMs = mine.length < room ? await tx.nextDeliveryAtMs(endpoint.id) : null
    if (atMs !== null) nextAtMs = Math.min(nextAtMs ?? atMs, atMs)
  }
  return { claimed, endpoints: states, nextAtMs }
}

/** Whoever asks first does not know yet that the endpoint has a rate: one attempt is within any. */
function allowanceOf(endpoint: Endpoint, { allowance, claimsMax }: DeliveryTurn): number {
  const allowed = allowance[endpoint.id] ?? (endpoint.ratePerSecond === null ? claimsMax : 1)
  return Math.min(allowed, claimsMax)
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
  await tx.saveEndpoint({ endpoint: { ...endpoint, id }, origin: 'config', disabled, health, keys: null, queuedTo })
}
