export interface FairQueueOptions {
  /** How many jobs may wait for all keys together. */
  readonly waitingMax: number
  readonly waitingPerKeyMax: number
  /** Makes the error with which a refused job rejects. */
  readonly refuse: () => Error
}

/** Runs jobs one at a time. Each job has a key, and the keys take turns, so that a key with many jobs delays only itself. */
export interface FairQueue {
  /** Runs `work` when its turn comes. Rejects if too many jobs wait, or if `isWanted` returns false when the turn comes. */
  run<Result>(key: string, work: () => Promise<Result>, isWanted: () => boolean): Promise<Result>
}

interface Job {
  readonly start: () => Promise<void>
  readonly isWanted: () => boolean
  readonly drop: () => void
}

/**
 * Each turn runs one job of the key that was served longest ago. If the queue is full, a new job of a key with few jobs displaces the latest
 * job of the key with the most jobs.
 */
export function createFairQueue({ waitingMax, waitingPerKeyMax, refuse }: FairQueueOptions): FairQueue {
  /** The waiting jobs by key. The key whose turn is next comes first. */
  const lines = new Map<string, Job[]>()
  let waiting = 0
  let isBusy = false

  const hasRoom = (line: readonly Job[]): boolean => {
    if (line.length >= waitingPerKeyMax) return false
    if (waiting < waitingMax) return true
    let longest: Job[] = []
    for (const other of lines.values()) if (other.length > longest.length) longest = other
    if (longest.length <= line.length + 1) return false
    longest.pop()?.drop()
    waiting--
    return true
  }

  const next = (): void => {
    while (!isBusy) {
      const [turn] = lines
      if (turn === undefined) return
      const [key, line] = turn
      const job = line.shift()
      lines.delete(key)
      if (line.length > 0) lines.set(key, line)
      if (job === undefined) continue
      waiting--
      if (!job.isWanted()) {
        job.drop()
        continue
      }
      isBusy = true
      void job.start().then(() => {
        isBusy = false
        next()
      })
    }
  }

  return {
    run: (key, work, isWanted) =>
      new Promise((resolve, reject) => {
        const line = lines.get(key) ?? []
        if (!hasRoom(line)) {
          reject(refuse())
          return
        }
        line.push({ start: () => work().then(resolve, reject), isWanted, drop: () => reject(refuse()) })
        lines.set(key, line)
        waiting++
        next()
      }),
  }
}
