import { expect, test } from 'vitest'
import { createComebacks } from '../../../../src/core/flow/ingest/receive.ts'
import { DAY_MS } from '../../../support/runner/constants.ts'

function start() {
  const told = { first: 0, again: 0 }
  let nowMs = 0
  const comebacks = createComebacks({
    tell(what) {
      told[what] += 1
    },
    clock: { monotonic: () => nowMs },
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { ...comebacks, told, pass }
}

test('a refused push that comes again after a day counts as a new push', () => {
  const { refused, taken, told, pass } = start()
  for (const signature of ['early', 'late']) refused(signature)
  pass(DAY_MS - 1)
  taken('early')
  expect(told).toEqual({ first: 2, again: 1 })
  pass(1)
  taken('late')
  expect(told).toEqual({ first: 2, again: 1 })
  refused('late')
  expect(told).toEqual({ first: 3, again: 1 })
})

test('if too many pushes were refused, those that were refused first are forgotten', () => {
  const { refused, taken, told } = start()
  const count = 20_005
  for (let nth = 0; nth < count; nth++) refused(`signature ${nth}`)
  for (let nth = 0; nth < count; nth++) taken(`signature ${nth}`)
  expect(told).toEqual({ first: count, again: 20_000 })
})
