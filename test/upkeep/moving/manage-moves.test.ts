import { expect, test } from 'vitest'
import type { Job } from '../../../src/core/domain/admin/job.ts'
import { createManageMoves, type ManageMovesPorts, type Mover } from '../../../src/upkeep/moving/manage-moves.ts'
import type { MoveProgress } from '../../../src/upkeep/moving/store-move.rules.ts'
import { OPERATOR } from '../../support/relay/operator.ts'

const JOB: Job = {
  jobId: 7,
  task: { kind: 'move', to: 'there' },
  state: 'waiting',
  by: 'admin',
  done: 0,
  cursor: null,
  failure: null,
  createdAtMs: 0,
  startedAtMs: null,
  endedAtMs: null,
}
const COPYING: MoveProgress = { step: 'copying', done: 1, total: 2 }
const WAITING: MoveProgress = { step: 'waiting', done: 0, total: 3 }

interface World {
  /** What the calls of the mover's `advance` return or throw, in order. The last one repeats. */
  readonly turns: readonly (MoveProgress | Error)[]
  readonly isWanted?: () => boolean
  readonly switchOver?: () => Promise<void>
  readonly openMover?: ManageMovesPorts['openMover']
  readonly trouble?: () => unknown
  readonly startJob?: ManageMovesPorts['write']['startJob']
  readonly abandon?: () => Promise<void>
}

/** `calls` lists in order what the moves did. */
function movesOf({
  turns,
  isWanted = () => true,
  switchOver = async () => undefined,
  openMover,
  startJob = async () => JOB,
  trouble = () => null,
  abandon = async () => undefined,
}: World) {
  const calls: string[] = []
  const closed = Promise.withResolvers<void>()
  let turn = 0
  const mover: Mover = {
    to: 'there',
    async advance() {
      const next = turns[Math.min(turn++, turns.length - 1)] ?? WAITING
      if (next instanceof Error) throw next
      return next
    },
    pause: async () => void calls.push('pause'),
    async switchOver({ jobId }) {
      calls.push(`switch ${jobId}`)
      await switchOver()
    },
    async abandon(failure) {
      calls.push(`abandon: ${failure}`)
      await abandon()
    },
    async close() {
      calls.push('close')
      closed.resolve()
    },
  }
  const moves = createManageMoves({
    write: {
      startJob,
      noteProgress: async ({ done }) => {
        calls.push(`note ${done}`)
        return { isWanted: isWanted() }
      },
    },
    openMover: openMover ?? (async () => mover),
    async handOver(seal) {
      calls.push('end writing')
      await seal()
      calls.push('take over')
    },
    trouble,
    untilMoved: async () => void calls.push('until moved'),
    clock: { now: () => 0, monotonic: () => 0 },
    pause: () => Promise.resolve(),
    log: { info: () => undefined, error: () => undefined },
  })
  return { moves, calls, closed: closed.promise }
}

async function ended({ moves }: ReturnType<typeof movesOf>): Promise<void> {
  while (moves.progressOf(7) !== null) await Promise.resolve()
}

test('a move copies the store, and switches after writing has stopped', async () => {
  const world = movesOf({ turns: [COPYING, WAITING] })
  expect(await world.moves.start({ to: 'there' }, OPERATOR)).toBe(JOB)
  await ended(world)
  expect(world.calls).toEqual(['note 1', 'note 3', 'pause', 'end writing', 'switch 7', 'close', 'take over', 'close'])
})

test('a second move is refused while one runs', async () => {
  const world = movesOf({ turns: [COPYING] })
  await world.moves.start({ to: 'there' }, OPERATOR)
  expect(world.moves.progressOf(7)).toMatchObject({ step: 'copying' })
  await expect(world.moves.start({ to: 'elsewhere' }, OPERATOR)).rejects.toMatchObject({ code: 'not_movable' })
  await world.moves.stop()
})

test('a move whose job is cancelled is abandoned', async () => {
  let looks = 0
  const world = movesOf({ turns: [COPYING], isWanted: () => ++looks < 3 })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await ended(world)
  expect(world.calls.slice(-2)).toEqual([expect.stringContaining('abandon'), 'close'])
  expect(world.calls).not.toContain('end writing')
})

test('a move is abandoned when the relay stops', async () => {
  const world = movesOf({ turns: [COPYING] })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await world.moves.stop()
  expect(world.calls.slice(-2)).toEqual([expect.stringContaining('The relay was stopped before the switch'), 'close'])
})

test('a move that fails while it copies is abandoned with the reason', async () => {
  const world = movesOf({ turns: [COPYING, new Error('the disk is full')] })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await ended(world)
  expect(world.calls).toEqual(['note 1', 'abandon: the disk is full', 'close'])
})

test('a move whose store cannot be reached is abandoned when the store is back', async () => {
  let attempts = 0
  const abandon = async () => {
    if (++attempts < 2) throw new Error('the connection was refused')
  }
  const world = movesOf({ turns: [new Error('the connection was lost')], abandon })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await world.closed
  expect(world.calls).toEqual(['abandon: the connection was lost', 'abandon: the connection was lost', 'close'])
})

test('stopping the relay does not wait for a move whose store cannot be reached', async () => {
  const world = movesOf({
    turns: [new Error('the connection was lost')],
    abandon: () => Promise.reject(new Error('the connection was refused')),
  })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await world.moves.stop()
  expect(world.calls.at(-1)).toBe('close')
})

test('a store that refuses writes is not moved', async () => {
  const world = movesOf({ turns: [], trouble: () => 'moving' })
  await expect(world.moves.start({ to: 'there' }, OPERATOR)).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5000 })
})

test('a move is abandoned when the store can take no more', async () => {
  let looks = 0
  const world = movesOf({ turns: [COPYING], trouble: () => (looks++ > 0 ? 'short' : null) })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await ended(world)
  expect(world.calls).toEqual([expect.stringContaining('abandon: The store can take no more now'), 'close'])
})

test('a switch that fails abandons the move, and the relay resumes its work', async () => {
  const world = movesOf({ turns: [WAITING], switchOver: () => Promise.reject(new Error('the copy differs')) })
  await world.moves.start({ to: 'there' }, OPERATOR)
  await ended(world)
  expect(world.calls).toEqual(['note 3', 'pause', 'end writing', 'switch 7', 'abandon: the copy differs', 'close', 'close'])
})

test('a move to a store that cannot be used leaves no job', async () => {
  const world = movesOf({ turns: [], openMover: () => Promise.reject(new Error('not empty')) })
  await expect(world.moves.start({ to: 'there' }, OPERATOR)).rejects.toThrow('not empty')
  expect(world.calls).toEqual([])
  await expect(world.moves.start({ from: 'there' }, OPERATOR)).rejects.toMatchObject({ code: 'bad_request' })
})

test('a move whose job cannot be queued is abandoned', async () => {
  const world = movesOf({ turns: [], startJob: async () => null })
  await expect(world.moves.start({ to: 'there' }, OPERATOR)).rejects.toMatchObject({ code: 'too_many_jobs' })
  expect(world.calls).toEqual(['abandon: The job could not be queued.', 'close'])
})

test('a relay stops writing for another replica’s move, and resumes after it', async () => {
  const world = movesOf({ turns: [] })
  await world.moves.awaitMove()
  expect(world.calls).toEqual(['end writing', 'until moved', 'take over'])
})
