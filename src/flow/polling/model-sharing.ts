import type { Log } from '../ports.ts'
import type { SharedModel } from './shared-model.ts'

export interface ModelSharingPorts {
  readonly model: Pick<SharedModel, 'leave' | 'follow'>
  /** Whether this replica is the poller. */
  readonly isPoller: () => boolean
  /** Looks at the health of the pushes, which the model tells. */
  readonly lookAtPushes: () => Promise<void>
  readonly log: Pick<Log, 'debug'>
}

/** Keeps the model of the carrier common to all replicas. A failure is logged, and the next call is another try. */
export interface ModelSharing {
  /** Leaves for the poller what this replica was taught. */
  leave(): Promise<void>
  /** Takes up what the poller has learnt. */
  follow(): Promise<void>
}

export function createModelSharing({ model, isPoller, lookAtPushes, log }: ModelSharingPorts): ModelSharing {
  const follow = async () => {
    if (isPoller()) return
    await model.follow({ resume: false })
    await lookAtPushes()
  }
  return {
    leave: () =>
      model.leave().catch((err: unknown) => log.debug({ err }, 'cannot leave what was learnt for the poller; the relay tries again')),
    follow: () => follow().catch((err: unknown) => log.debug({ err }, 'cannot read the model of the carrier; the relay tries again')),
  }
}
