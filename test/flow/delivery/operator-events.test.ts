import { expect, test } from 'vitest'
import type { OperatorEvent } from '../../../src/domain/delivery/operator-event.ts'
import { createCredentialAlert } from '../../../src/flow/delivery/operator-events.tx.ts'

test('that the carrier refuses the credentials is told once, and once more when it does so again after it accepted them', async () => {
  let credentials: 'accepted' | 'refused' = 'accepted'
  const told: OperatorEvent[] = []
  let wakes = 0
  let isFull = true
  const tell = createCredentialAlert({
    write: {
      async queueOperatorEvent(event) {
        if (isFull) throw new Error('the store is full')
        told.push(event)
      },
    },
    credentials: () => credentials,
    now: () => 0,
    wake: () => {
      wakes += 1
    },
  })
  await tell()
  credentials = 'refused'
  // What could not be written down was not told.
  await expect(tell()).rejects.toThrow('full')
  isFull = false
  for (let times = 0; times < 3; times++) await tell()
  expect([told, wakes]).toEqual([[{ event: 'credentials_refused' }], 1])
  credentials = 'accepted'
  await tell()
  credentials = 'refused'
  for (let times = 0; times < 3; times++) await tell()
  expect([told.length, wakes]).toEqual([2, 2])
})
