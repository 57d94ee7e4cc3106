import type { Relay } from '../relay.ts'
import type { SharedModel } from './shared-model.ts'

export interface ModelSharingPorts extends Pick<Relay, 'log'> {
  readonly model: Pick<SharedModel, 'leave' | 'load'>
  /** Whether this replica is the poller. */
  readonly isPoller: () => boolean
  /** Reads the health of pushes from the model. */
  readonly lookAtPushes: () => Promise<void>
}

/** Keeps the model of the carrier the same on all replicas. A failure is logged, and the next call tries again. */
export interface ModelSharing {
  /** Passes what this replica has learnt on to the poller. */
  leave(): Promise<void>
  /** Loads the model that the poller has saved, unless this replica is the poller. */
  load(): Promise<void>
}

export function createModelSharing({ model, isPoller, lookAtPushes, log }: ModelSharingPorts): ModelSharing {
  const load = async () => {
    if (isPoller()) return
    await model.load({ resume: false })
    await lookAtPushes()
  }
  return {
    leave: () =>
      model
        .leave()
        .catch((err: unknown) => log.debug({ err }, 'cannot tell the poller what this replica has learnt; the relay tries again')),
    load: () => load().catch((err: unknown) => log.debug({ err }, 'cannot read the model of the carrier; the relay tries again')),
  }
}
