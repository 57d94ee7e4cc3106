import { expect, test } from 'vitest'
import type { PushHealth } from '../../../../src/core/domain/polling/push-health.ts'
import { openPushHealthMonitor } from '../../../../src/core/flow/polling/poller.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

test('a change of the health of pushes is logged once, and its operator event is sent at once', async () => {
  const told: { readonly health: PushHealth; readonly eventQueued: boolean }[] = [
    { health: 'healthy', eventQueued: false },
    { health: 'silent', eventQueued: true },
    { health: 'silent', eventQueued: false },
    { health: 'lossy', eventQueued: false },
  ]
  const { log, lines } = createLogBook()
  let wakes = 0
  const news = told.values()
  const pushes = await openPushHealthMonitor({
    write: {
      pushChannel: async () => ({
        health: 'healthy',
        loss: 0,
        lastPushAtMs: null,
        restoredAtMs: null,
        missedSincePush: 0,
        silence: null,
        lastSilence: null,
        probation: null,
        newest: { count: 0, misread: 0, areTooMany: false, misreadAtMs: null },
        missed: { count: 0, sinceMs: 0, lastFoundAtMs: null },
      }),
      checkpointModel: async () => news.next().value ?? { health: 'unknown', eventQueued: false },
    },
    log,
    wake: () => void wakes++,
  })
  expect(pushes.health()).toBe('healthy')
  const seen: PushHealth[] = []
  for (const _one of told) {
    await pushes.update()
    seen.push(pushes.health())
  }
  expect(seen).toEqual(['healthy', 'silent', 'silent', 'lossy'])
  expect([wakes, lines.map(({ level }) => level)]).toEqual([1, ['warn', 'info']])
})
