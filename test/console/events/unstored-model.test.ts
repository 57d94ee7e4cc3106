import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createUnstored, type Kept, type Unwritten } from '../../../src/console/events/unstored.ts'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const SUBJECTS = ['disk', 'disk full', 'certificate']

type Step =
  | { readonly do: 'event' | 'retry' | 'kill' | 'store' | 'file' | 'receiver' }
  | { readonly do: 'trouble' | 'end'; readonly subject: string }

const step: fc.Arbitrary<Step & { readonly turns: number }> = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant({ do: 'retry' } as const) },
      { weight: 3, arbitrary: fc.constantFrom({ do: 'event' } as const, { do: 'store' } as const) },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constantFrom('trouble' as const, 'end' as const), subject: fc.constantFrom(...SUBJECTS) }),
      },
      { weight: 1, arbitrary: fc.constantFrom({ do: 'kill' } as const, { do: 'file' } as const, { do: 'receiver' } as const) },
    ),
    fc.nat(12),
  )
  .map(([one, turns]) => ({ ...one, turns }))

/** A store, a file beside it and a receiver of events, which outlive the processes that use them. */
function openWorld() {
  const isUp = { store: true, file: true, receiver: true }
  const troubles = new Map<string, number>()
  /** How often each event is in the store, and how often it was queued there for operators; how often the receiver got it, by its id. */
  const [stored, queued, posted] = [new Map<string, number>(), new Map<string, number>(), new Map<string, Set<string>>()]
  const add = (counts: Map<string, number>, key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1)
  const world = { isUp, troubles, stored, queued, posted, saved: [] as readonly Kept[], process: 0, atMs: 0 }
  const told = (key: string, isPosted: boolean | undefined) => {
    add(stored, key)
    if (isPosted !== true) add(queued, key)
  }

  function start() {
    world.process += 1
    const own = world.process
    const turn = async () => {
      for (let turns = 0; turns < 3; turns++) await Promise.resolve()
    }
    /** Changes the world, unless the process was killed meanwhile: then it never returns. */
    const act = async <T>(change: () => T): Promise<T> => {
      await turn()
      if (world.process !== own) await new Promise<never>(() => undefined)
      const changed = change()
      await turn()
      return changed
    }
    const use = <T>(what: 'store' | 'file', change: () => T): Promise<T> =>
      act(() => {
        if (!isUp[what]) throw new StorageFailure(`the ${what} is full`)
        return change()
      })
    const unstored = createUnstored({
      write: {
        beginTrouble: ({ subject, nowMs, isPosted }) =>
          use('store', () => {
            const isNew = !troubles.has(subject)
            if (isNew) troubles.set(subject, nowMs)
            if (isNew) told(`trouble ${nowMs}`, isPosted)
            return isNew
          }),
        recordOperatorEvent: (_event, atMs, given) => use('store', () => told(`event ${atMs}`, given?.isPosted)),
        endBackup: async () => false,
        saveRefused: async () => undefined,
        addTallies: async () => undefined,
        noteDown: async () => undefined,
      },
      file: {
        read: () => structuredClone(world.saved),
        write: (items) =>
          use('file', () => {
            world.saved = structuredClone(items)
          }),
      },
      clock: { now: () => world.atMs },
      log: createLogBook().log,
      wake: () => undefined,
    })
    const post = async (body: Uint8Array, id: string) => {
      const atMs = String(Date.parse(String(Reflect.get(JSON.parse(Buffer.from(body).toString()), 'at'))))
      return await act(() => {
        if (isUp.receiver) posted.set(atMs, (posted.get(atMs) ?? new Set()).add(id))
        return isUp.receiver
      })
    }
    return { unstored, post }
  }
  return { ...world, world, start }
}

const keyOf = (what: Unwritten) =>
  what.kind === 'trouble' ? `trouble ${what.begun.nowMs}` : what.kind === 'event' ? `event ${what.atMs}` : ''

const settle = async (turns = 2000) => {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve()
}

test('what a full store could not take is stored once, over kills at any moment', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.boolean(), async (steps, areKilledIdle) => {
      const { world, start, isUp, troubles, stored, queued, posted } = openWorld()
      let { unstored, post } = start()
      const given = new Set<string>()
      /** What a kill has met after it was stored and before the file said so: it may be stored twice. */
      const torn = new Set<string>()
      for (const { turns, ...one } of steps) {
        world.atMs += 1
        if (one.do === 'store' || one.do === 'file' || one.do === 'receiver') isUp[one.do] = !isUp[one.do]
        if (one.do === 'retry') void unstored.retry(post)
        if (one.do === 'event') {
          given.add(`event ${world.atMs}`)
          void unstored.write({ kind: 'event', event: { event: 'credentials_refused' }, atMs: world.atMs })
        }
        if (one.do === 'trouble') {
          const begun = { subject: one.subject, event: { event: 'credentials_refused' }, nowMs: world.atMs } as const
          if (!troubles.has(one.subject) && unstored.sinceMs(one.subject) === null) given.add(`trouble ${world.atMs}`)
          void unstored.write({ kind: 'trouble', begun })
        }
        if (one.do === 'end' && isUp.store && unstored.sinceMs(one.subject) === null) troubles.delete(one.subject)
        if (one.do === 'kill') {
          if (areKilledIdle) await settle()
          const saved = world.saved.map(({ what }) => keyOf(what))
          for (const key of saved) if (stored.has(key)) torn.add(key)
          // In between nothing is torn, unless the file cannot be written.
          if (areKilledIdle && isUp.file) expect([...torn]).toEqual([])
          for (const key of given) if (!stored.has(key) && !saved.includes(key)) given.delete(key)
          ;({ unstored, post } = start())
        }
        await settle(turns)
      }
      Object.assign(isUp, { store: true, file: true, receiver: true })
      for (let round = 0; round < 4; round++) {
        await unstored.retry(post)
        await settle()
      }
      for (const key of given) expect([key, stored.get(key)]).toEqual([key, torn.has(key) ? expect.any(Number) : 1])
      expect([...stored].filter(([key, times]) => times > 1 && !torn.has(key))).toEqual([])
      // An event has one id, also if it was posted by two processes.
      expect([...posted.values()].filter((ids) => ids.size > 1)).toEqual([])
      // Without a kill, whoever was told by a post is not told by the store, too.
      const wasKilled = steps.some((one) => one.do === 'kill')
      if (!wasKilled) expect([...queued.keys()].filter((key) => posted.has(key.replace(/^\w+ /, '')))).toEqual([])
      expect(world.saved).toEqual([])
    }),
    { numRuns: 150 },
  )
})
