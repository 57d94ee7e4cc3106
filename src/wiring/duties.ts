import type { Log } from '../flow/ports.ts'
import type { Delivery } from './delivery.ts'
import type { Storage } from './opened-storage.ts'
import type { openPolling } from './polling.ts'
import type { CommitSignal } from './recording.ts'

export interface DutiesPorts {
  readonly storage: Pick<Storage, 'replicas' | 'write' | 'clock'>
  readonly commitSignal: CommitSignal
  readonly delivery: Delivery
  readonly polling: Pick<ReturnType<typeof openPolling>, 'poller'>
  /** Call when the feed has grown. */
  readonly tellFollowers: () => void
  readonly log: Log
}

/** Begins to take roles, and to act on what this replica and others commit. */
export function beginDuties({ storage, commitSignal, delivery, polling, tellFollowers, log }: DutiesPorts): void {
  const { replicas, write, clock } = storage
  commitSignal.follow({
    committed: (_source, { joined, queued }) => (joined ? delivery.review() : queued ? delivery.wake() : undefined),
    failed: () => undefined,
  })
  const tidy = createTidy({ replicas, write, clock, log })
  replicas.begin(
    {
      taken(roles) {
        if (roles.includes('poller')) polling.poller.wake()
        if (roles.includes('janitor')) tidy()
        delivery.reviewAll()
      },
      giveUp: (role) => (role === 'poller' ? polling.poller.rests() : delivery.drained(role)),
      lapsed: delivery.lapsed,
    },
    {
      committed() {
        tellFollowers()
        delivery.wake()
      },
      reordered: delivery.reviewAll,
      replicasChanged: tidy,
    },
  )
}

/** Removes endpoints that no config names any more, and warns of replicas whose configs differ. */
function createTidy({ replicas, write, clock, log }: Pick<DutiesPorts, 'log'> & DutiesPorts['storage']): () => void {
  let warnedOf = ''
  const look = async () => {
    const fingerprints = new Map((await replicas.list()).map(({ name, configFingerprint }) => [name, configFingerprint]))
    const seen = [...new Set(fingerprints.values())].sort().join()
    if (seen.includes(',') && seen !== warnedOf) {
      log.warn({ replicas: Object.fromEntries(fingerprints) }, 'replicas run with different configs; give all of them the same')
    }
    warnedOf = seen
    if (replicas.holds('janitor')) await write.removeUnnamedEndpoints(clock.now())
  }
  return () => {
    look().catch((err: unknown) => log.warn({ err }, 'cannot look at the other replicas; the relay tries again when one changes'))
  }
}
