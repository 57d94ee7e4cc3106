import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { createSilence } from '../../../src/server/postgres/server-watch.ts'

/** Acts as a server that answers, and accepts connections, only when the test says so. */
function createWorld() {
  const looks: PromiseWithResolvers<boolean>[] = []
  let speaks = false
  let cuts = 0
  const silence = createSilence({
    hasSpoken: () => speaks,
    look() {
      const look = Promise.withResolvers<boolean>()
      looks.push(look)
      return { isThere: look.promise, giveUp: () => look.resolve(false) }
    },
    cut() {
      cuts += 1
    },
  })
  const turn = async ({ isHeard = false } = {}) => {
    speaks = isHeard
    silence.turn()
    await nextTurn()
  }
  return {
    silence,
    looks,
    cuts: () => cuts,
    turn,
    async turns(count: number) {
      for (let nth = 0; nth < count; nth++) await turn()
    },
  }
}

/** Makes a request that waits until the test answers it. */
function ask({ silence }: ReturnType<typeof createWorld>) {
  const answer = Promise.withResolvers<number>()
  const asked = { state: 'waits', answer: answer.resolve, check: () => undefined as unknown }
  silence
    .run((check) => {
      asked.check = check
      return answer.promise
    })
    .then(
      () => (asked.state = 'answered'),
      (error: unknown) => (asked.state = error instanceof StorageFailure ? 'unavailable' : 'failed'),
    )
  return asked
}

test('S18: requests to a silent server fail within 0.8 s, and later requests at once', async () => {
  const world = createWorld()
  const first = ask(world)
  await world.turns(5)
  const second = ask(world)
  await world.turns(2)
  expect([first.state, second.state]).toEqual(['waits', 'waits'])
  await world.turn()
  expect([first.state, second.state]).toEqual(['unavailable', 'unavailable'])
  expect(first.check).toThrow(StorageFailure)
  const third = ask(world)
  await nextTurn()
  expect(third.state).toBe('unavailable')
})

test('while the server answers on some connection, no new connection is tried', async () => {
  const world = createWorld()
  const asked = ask(world)
  for (let nth = 0; nth < 100; nth++) await world.turn({ isHeard: nth % 3 === 0 })
  expect([asked.state, world.looks.length]).toEqual(['waits', 0])
  asked.answer(7)
  await nextTurn()
  expect(asked.state).toBe('answered')
})

test('a server that nobody asks does not count as silent', async () => {
  const world = createWorld()
  await world.turns(100)
  const asked = ask(world)
  await world.turns(7)
  expect(asked.state).toBe('waits')
})

test('a server that accepts connections is not silent, however long a statement takes', async () => {
  const world = createWorld()
  const asked = ask(world)
  for (let nth = 0; nth < 100; nth++) {
    await world.turn()
    world.looks.at(-1)?.resolve(true)
    await nextTurn()
  }
  expect([asked.state, world.cuts()]).toEqual(['waits', 0])
})

test('a silent server gets requests again after it answers on an old connection', async () => {
  const world = createWorld()
  ask(world)
  await world.turns(8)
  expect(world.silence.isSilent()).toBe(true)
  await world.turn({ isHeard: true })
  const asked = ask(world)
  world.looks.at(-1)?.resolve(true)
  await world.turns(1)
  expect([asked.state, world.cuts()]).toEqual(['waits', 0])
})

test('while a server is silent, new connections are tried one at a time', async () => {
  const world = createWorld()
  ask(world)
  await world.turns(20)
  expect([world.looks.length, world.cuts()]).toEqual([1, 0])
  await world.turns(3)
  expect([world.looks.length, world.cuts()]).toEqual([2, 1])
  world.looks.at(-1)?.resolve(true)
  await nextTurn()
  expect([world.silence.isSilent(), world.cuts()]).toEqual([true, 2])
  await world.turn()
  expect(world.silence.isSilent()).toBe(false)
})

test('an error that the server reports is passed on at once', async () => {
  const { silence } = createWorld()
  await expect(silence.run(() => Promise.reject(new Error('no such table')))).rejects.toThrow('no such table')
})
