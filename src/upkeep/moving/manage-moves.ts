import type { Job } from '../../core/domain/admin/job.ts'
import type { Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import { isObject, member } from '../../core/domain/json-body.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { Part, Relay, Writes } from '../../core/flow/relay-part.ts'
import { MOVE_WAS_STOPPED, type MoveProgress } from './store-move.rules.ts'

/** A move of the store, on a thread of its own. Both stores are open. */
export interface Mover {
  /** The address of the new store, as messages name it. */
  readonly to: string
  advance(): Promise<MoveProgress>
  pause(): Promise<void>
  switchOver(job: { readonly jobId: number; readonly nowMs: number }): Promise<void>
  /** Abandons the move. The old store stays in use, and the job fails with this reason. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

export interface ManageMovesPorts extends Pick<Relay, 'clock'>, Part<'log', 'info' | 'error'>, Writes<'startJob' | 'noteProgress'> {
  /** Opens both stores. `signal` stops the opening. Throws `not_movable` if the store cannot be moved to this address. */
  readonly openMover: (to: string, signal: AbortSignal) => Promise<Mover>
  /**
   * Ends all writing, runs `seal`, and lets a new relay take over. The new relay opens the store that `seal` leaves in use. Null: no relay
   * can take over.
   */
  readonly handOver: ((seal: () => Promise<void>) => Promise<void>) | null
  /** Returns why the store accepts no writes; null: it accepts them. */
  readonly trouble: () => unknown
  /** Resolves when a move by another replica has ended, successful or not. */
  readonly untilMoved: () => Promise<void>
  readonly pause: (ms: number) => Promise<unknown>
}

/** Lets operators move the store (CONTRACT, `move-store`). */
export type ManageMoves = ReturnType<typeof createManageMoves>

interface Running {
  readonly job: Job
  readonly mover: Mover
  progress: MoveProgress
  isStopping: boolean
  isGivenUp: boolean
  ended: Promise<void>
}

type TakeOver = NonNullable<ManageMovesPorts['handOver']>

/** The job is read once in this many turns of the mover, to see whether an operator has cancelled it. */
const TURNS_PER_LOOK = 4
const RETRY_AFTER_MS = 5000
const REST_MS = 1000

export function createManageMoves(ports: ManageMovesPorts) {
  const { write, openMover, handOver, untilMoved, trouble, clock, log } = ports
  let running: Running | null = null
  let isOpening = false
  const opening = new AbortController()

  async function queueJob({ to }: Mover, by: Actor): Promise<Job> {
    const nowMs = clock.now()
    const action: OperatorAction = { atMs: nowMs, by, action: 'store.move_started', target: { kind: 'store', id: to }, detail: {} }
    const job = await write.startJob({ task: { kind: 'move', to }, by: by.name, nowMs, action })
    if (job === null) throw new AppError('too_many_jobs', 'Too many jobs have not ended. Cancel some, or wait.')
    return job
  }

  async function startJob(to: string, by: Actor, takeOver: TakeOver): Promise<Job> {
    const mover = await openMover(to, opening.signal)
    const job = await queueJob(mover, by).catch(async (error: unknown) => {
      await mover.abandon('The job could not be queued.', clock.now()).catch(() => undefined)
      await mover.close()
      throw error
    })
    const progress: MoveProgress = { step: 'copying', done: 0, total: 0 }
    const move: Running = { job, mover, progress, isStopping: false, isGivenUp: false, ended: Promise.resolve() }
    running = move
    log.info({ job: job.jobId, to: mover.to, by: by.name }, 'the store is being moved')
    move.ended = runMove(ports, move, takeOver).finally(() => {
      running = null
    })
    return job
  }

  return {
    /** Starts a move. `body` gives the new address: `{ "to": "postgres://..." }`. Throws `bad_request`, `not_movable` and `too_many_jobs`. */
    async start(body: unknown, by: Actor): Promise<Job> {
      const to = addressIn(body)
      if (handOver === null) throw new AppError('not_movable', 'This relay cannot move its store while it runs.')
      if (trouble() !== null)
        throw new AppError('storage_unavailable', 'The store takes no writes now. Try again later.', { retryAfterMs: RETRY_AFTER_MS })
      if (running !== null || isOpening) throw new AppError('not_movable', 'The store is being moved already.')
      isOpening = true
      try {
        return await startJob(to, by, handOver)
      } finally {
        isOpening = false
      }
    },
    /** Returns the progress of the move with this job; null: the move is not running. */
    progressOf: (jobId: number): MoveProgress | null => (running?.job.jobId === jobId ? running.progress : null),
    /** Called when another replica moves the store. Ends writing, waits for the move, and lets a new relay open the store that is then in use. */
    async awaitMove() {
      if (handOver === null || running?.progress.step === 'switching') return
      log.info({}, 'another replica moves the store: this one writes no more until that is done')
      await handOver(untilMoved)
    },
    /** Stops the opening of a new store. */
    abortPending: () => opening.abort(),
    /** Abandons the running move. If the switch to the new store has begun, does nothing. */
    async stop() {
      opening.abort()
      if (running === null || running.progress.step === 'switching') return
      running.isStopping = true
      await running.ended
    },
  }
}

function addressIn(body: unknown): string {
  const to = isObject(body) ? member(body, 'to') : undefined
  if (typeof to !== 'string') throw wrongInput('body', 'to', 'to must be the new store: sqlite:PATH or postgres://...')
  return to
}

/** Runs a move until it has switched to the new store, has failed or was stopped. Never rejects. */
async function runMove(ports: ManageMovesPorts, move: Running, takeOver: TakeOver): Promise<void> {
  const { job, mover } = move
  try {
    if (!(await copy(ports, move))) {
      await abandon(ports, move, MOVE_WAS_STOPPED, 'until done')
      return
    }
    move.progress = { ...move.progress, step: 'switching' }
    await mover.pause()
    await takeOver(() => seal(ports, move))
  } catch (error) {
    ports.log.error({ err: error, job: job.jobId, to: mover.to }, 'the move of the store failed; the previous store stays in use')
    await abandon(ports, move, describe(error), 'until done')
  } finally {
    await mover.close().catch(() => undefined)
  }
}

/** Copies until the switch to the new store can begin. Returns false if the move was cancelled or the relay stops. */
async function copy({ write, trouble, clock }: ManageMovesPorts, move: Running): Promise<boolean> {
  for (let turn = 0; !move.isStopping; turn++) {
    move.progress = await move.mover.advance()
    if (trouble() !== null)
      throw new Error(
        'The store can take no more now: its disk is full, or nearly, or a file of it is lost. /readyz says which. If what was copied is on the same disk, delete it.',
      )
    const { step, done, total } = move.progress
    if (turn % TURNS_PER_LOOK !== 0 && step !== 'waiting') continue
    const rows = step === 'copying' ? done : total
    const { isWanted } = await write.noteProgress({ jobId: move.job.jobId, done: rows, nowMs: clock.now() })
    if (!isWanted || step === 'waiting') return isWanted
  }
  return false
}

/** Switches to the new store while nothing writes. Then closes both stores: a new relay opens the one that is now in use. */
async function seal(ports: ManageMovesPorts, move: Running): Promise<void> {
  const { job, mover } = move
  try {
    await mover.switchOver({ jobId: job.jobId, nowMs: ports.clock.now() })
    ports.log.info({ job: job.jobId, to: mover.to }, 'the store was moved; a relay on the new one takes over')
  } catch (error) {
    await abandon(ports, move, describe(error), 'once')
    throw error
  } finally {
    await mover.close()
  }
}

/**
 * Abandons a move. `until done`: tries again until it succeeds or the relay stops. As long as a move is not abandoned, the old store records the
 * keys of all changes for it.
 */
async function abandon(
  { clock, log, pause }: ManageMovesPorts,
  move: Running,
  failure: string,
  patience: 'once' | 'until done',
): Promise<void> {
  const { job, mover } = move
  for (let attempt = 1; !move.isGivenUp; attempt++) {
    const err: unknown = await mover.abandon(failure, clock.now()).then(
      () => null,
      (error: unknown) => error,
    )
    const isLast = patience === 'once' || move.isStopping
    move.isGivenUp = err === null || isLast
    if (err === null) return
    if (isLast) log.error({ err, job: job.jobId }, 'what a move has added to the store could not be removed; the next start removes it')
    else if (attempt === 1)
      log.error({ err, job: job.jobId }, 'what a move has added to the store could not be removed; the relay keeps trying')
    if (!isLast) await pause(REST_MS)
  }
}

function describe(error: unknown): string {
  return describeFailure(error)
}
