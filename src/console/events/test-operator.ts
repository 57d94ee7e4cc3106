import { type Actor, shownTest } from '../../core/domain/admin/operator-action.ts'
import type { AttemptResult } from '../../core/domain/delivery/delivery.ts'
import { encodeOperatorEvent } from '../../core/domain/delivery/operator-event.ts'
import { recordTest, type SendOncePorts, sendTest } from '../../core/flow/delivery/send-test.ts'
import type { Part, Reads, Writes } from '../../core/flow/relay.ts'
import { type EnableOperator, operatorState } from './enable-operator.ts'

export interface TestOperatorPorts extends SendOncePorts, Reads<'listEndpoints'>, Writes<'recordAction'>, Part<'log', 'warn'> {
  readonly enable: EnableOperator['enable']
}

/**
 * Makes one attempt now to send a test event to the address in `operator.url`, even if its answers have disabled it. If the address accepts the event,
 * it is enabled. Throws `not_found` if no config names an address.
 */
export type TestOperator = (by: Actor) => Promise<AttemptResult>

export function createTestOperator(ports: TestOperatorPorts): TestOperator {
  const { reads, clock, enable } = ports
  return async (by) => {
    const state = await operatorState(reads)
    const result = await sendTest(state, encodeOperatorEvent({ event: 'test' }, clock.now()), ports)
    const action = { atMs: clock.now(), by, action: 'operator.tested', target: null, detail: { result: result.kind } } as const
    await recordTest({ ...action, shown: shownTest(result) }, ports)
    if (result.kind === 'accepted') await enable(by)
    return result
  }
}
