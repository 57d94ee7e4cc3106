import type { Config } from '../config/config.ts'
import { type BatchReport, type CommitStats, commitStatsOf } from '../domain/history/recording.ts'
import { refuseInTrouble } from '../runtime/disk-watch.ts'
import { boundsOf, createGroupCommit } from '../runtime/group-commit.ts'
import { systemClock } from '../runtime/system-clock.ts'
import type { Closing } from './closing.ts'
import type { Storage } from './opened-storage.ts'

export type Source = 'pushes' | 'polls'

export interface CommitListener {
  committed(source: Source, stats: CommitStats): void
  failed(source: Source, error: unknown): void
}

/** Notifies its listeners of every commit, in the order in which they were added. */
export interface CommitSignal extends CommitListener {
  subscribe(listener: CommitListener): void
}

function createCommitSignal(): CommitSignal {
  const listeners: CommitListener[] = []
  return {
    committed(source, stats) {
      for (const listener of listeners) listener.committed(source, stats)
    },
    failed(source, error) {
      for (const listener of listeners) listener.failed(source, error)
    },
    subscribe(listener) {
      listeners.push(listener)
    },
  }
}

export type Recording = ReturnType<typeof openRecording>

/** Assembles the recording of polls, which run on this thread. The receiver's thread records pushes. */
export function openRecording(config: Config, { queue, disk, closing }: Pick<Storage, 'queue' | 'disk'> & { readonly closing: Closing }) {
  const commitSignal = createCommitSignal()
  const groupCommit = createGroupCommit(
    {
      queue,
      onCommitted: (report) => commitSignal.committed('polls', commitStatsOf(report)),
      monotonic: systemClock.monotonic,
      onFailed: (error) => commitSignal.failed('polls', error),
    },
    boundsOf(config.limits.batch),
  )
  const recorder = refuseInTrouble(groupCommit, disk)
  closing.add(() => recorder.drained())
  /** Call it with the report of reprocessed pushes. */
  const reprocessed = (report: BatchReport) => commitSignal.committed('pushes', commitStatsOf(report))
  /** Call it when the feed has events that came from no observation. */
  const retired = () => reprocessed({ outcomes: [], touchedParcels: [], durationMs: 0 })
  return { recorder, commitSignal, reprocessed, retired }
}
