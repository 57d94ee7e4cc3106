import type { Actor } from '../../core/domain/admin/operator-action.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Part, Reads, Writes } from '../../core/flow/relay.ts'
import type { ReadSide } from '../../core/store/read-store.ts'

export interface EnableOperatorPorts extends Part<'clock', 'now'>, Reads<'listEndpoints'>, Writes<'changeEndpoint'> {
  /** Called after the endpoint for operator events was enabled. */
  readonly review: () => void
}

/** Enables the endpoint for operator events after a 410 or 120 hours of failures has disabled it. What has waited is sent then. */
export interface EnableOperator {
  /** By an operator's order. Does nothing if it is enabled. Throws `not_found` if no config names an address. */
  enable(by: Actor): Promise<void>
  /** Enables it if it has been disabled for a day. It reports all trouble but its own, so nobody may know of that. */
  tryDaily(): Promise<void>
}

const DAY_MS = 86_400_000

export function createEnableOperator({ reads, write, clock, review }: EnableOperatorPorts): EnableOperator {
  async function enable({ endpoint }: EndpointState, by: Actor | null): Promise<void> {
    const nowMs = clock.now()
    const action = by === null ? {} : { action: { atMs: nowMs, by, action: 'operator.enabled' as const, target: null, detail: {} } }
    await write.changeEndpoint({ id: endpoint.id, change: { enabled: true }, key: null, nowMs, ...action })
    review()
  }

  return {
    async enable(by) {
      const state = await operatorState(reads)
      if (state.disabled !== null) await enable(state, by)
    },
    async tryDaily() {
      const state = (await reads.listEndpoints()).find(isOperator)
      if (state?.disabled !== 'gone' && state?.disabled !== 'failing') return
      // A clock that was set back must not put this off.
      if (Math.abs(clock.now() - (state.disabledSince?.atMs ?? 0)) >= DAY_MS) await enable(state, null)
    },
  }
}

function isOperator({ origin }: EndpointState): boolean {
  return origin === 'operator'
}

/** Returns the endpoint for operator events. Throws `not_found` if no config names an address. */
export async function operatorState(reads: Pick<ReadSide, 'listEndpoints'>): Promise<EndpointState> {
  const state = (await reads.listEndpoints()).find(isOperator)
  if (state === undefined || state.disabled === 'unnamed')
    throw new AppError('not_found', 'No address for operator events is configured: write operator.url in the config, and reload.')
  return state
}
