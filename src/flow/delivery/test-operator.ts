import type { Actor } from '../../domain/admin/operator-action.ts'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import { encodeOperatorEvent } from '../../domain/delivery/operator-event.ts'
import { shownTest } from '../../domain/delivery/shown-again.ts'
import { AppError } from '../../domain/errors.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'
import { type SendTestPorts, sendTest } from './send-test.ts'

export interface TestOperatorPorts extends SendTestPorts {
  readonly reads: Pick<ReadSide, 'listEndpoints'>
  readonly write: Pick<WriteSide, 'recordAction'>
}

/** Makes one attempt now to send a test event to the address in `operator.url`. Throws `not_found` if no config names an address. */
export type TestOperator = (by: Actor) => Promise<AttemptResult>

export function createTestOperator(ports: TestOperatorPorts): TestOperator {
  const { reads, write, clock } = ports
  return async (by) => {
    const state = (await reads.listEndpoints()).find(({ origin, disabled }) => origin === 'operator' && disabled === null)
    if (state === undefined)
      throw new AppError('not_found', 'No address for operator events is configured: write operator.url in the config, and reload.')
    const result = await sendTest(state, encodeOperatorEvent({ event: 'test' }, clock.now()), ports)
    const action = { atMs: clock.now(), by, action: 'operator.tested', target: null, detail: { result: result.kind } } as const
    await write.recordAction({ ...action, shown: shownTest(result) })
    return result
  }
}
