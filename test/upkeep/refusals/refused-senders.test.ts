import { expect, test } from 'vitest'
import { createRefusedSenders } from '../../../src/core/flow/ingest/receive.ts'

function open() {
  let nowMs = 0
  const senders = createRefusedSenders({ now: () => ++nowMs })
  return { ...senders, addresses: () => senders.list().map(({ address }) => address) }
}

test('senders of refused pushes are listed with counts and times, latest first', () => {
  const { add, list } = open()
  for (const address of ['a', 'b', 'a']) add(address)
  expect(list()).toEqual([
    { address: 'a', count: 2, firstAtMs: 1, lastAtMs: 3 },
    { address: 'b', count: 1, firstAtMs: 2, lastAtMs: 2 },
  ])
})

test('the last fifty of ten thousand senders are remembered, and a steady sender is among them', () => {
  const { add, list, addresses } = open()
  for (let nth = 0; nth < 10_000; nth++) {
    add(`10.0.${nth}`)
    if (nth % 40 === 0) add('steady')
  }
  expect([list().length, addresses().includes('steady'), addresses()[0]]).toEqual([50, true, '10.0.9999'])
})
