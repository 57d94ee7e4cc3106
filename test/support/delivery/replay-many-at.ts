import { createReplayMany, type ReplayMany } from '../../../src/upkeep/replay/manage-replays.ts'

type Ports = Parameters<typeof createReplayMany>[0]

/** Creates what replays many deliveries of a store. Unless `ports` says otherwise, it wakes no dispatcher. */
export function replayManyAt(ports: Pick<Ports, 'write' | 'reads' | 'clock'> & Partial<Ports>): ReplayMany {
  return createReplayMany({ review: () => {}, work: () => {}, inTurn: (work) => work(), stopping: new AbortController().signal, ...ports })
}
