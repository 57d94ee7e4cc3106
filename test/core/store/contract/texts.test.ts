import { describe, expect, test } from 'vitest'
import type { JobTask } from '../../../../src/core/domain/admin/job.ts'
import { insertJob } from '../../../../src/core/store/admin/jobs.ts'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import { escapeNul, unescapeNul } from '../../../../src/server/postgres/postgres-dialect.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines, openBareStore } from '../../../support/store/engines.ts'

const TEXTS = ['\u0000', 'a\u0000\u0000b', '\u0001', 'a\u0001\u0000\u0001\u0002b\u0000', '\u0001\u0001\u0002', 'a\u{1f600}\ufdd0', '']
const ANY = { fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
const TASK: JobTask = { kind: 'replay', selection: { ...ANY, endpointId: '2', states: ['dead'] }, to: '2', untilMs: NOON }
const HALVES = 'a\ud800b\udc00'

describe.each(engines)('texts on $name', (engine) => {
  test('B6: any text is returned as stored, but half a surrogate pair becomes U+FFFD', async () => {
    const { store, reads } = await openBareStore(engine)
    for (const text of [...TEXTS, HALVES]) {
      const { jobId } = await store.transaction((tx) => insertJob(tx, TASK, text, NOON))
      expect((await reads.findJob(jobId))?.by).toBe(text === HALVES ? 'a\ufffdb\ufffd' : text)
      await store.transaction((tx) => saveSetting(tx, text, Buffer.from('kept')))
      expect(String(await store.transaction((tx) => tx.loadSetting(text)))).toBe('kept')
    }
  })
})

test('the escape of NUL keeps the order of texts', () => {
  const inOrder = [...TEXTS, '\u0000\u0002', '\u0001\u0000', '\u0002', 'a', 'a\u0000', 'a\u0001'].sort()
  expect(inOrder.map(escapeNul).sort()).toEqual(inOrder.map(escapeNul))
  expect(inOrder.map((text) => unescapeNul(escapeNul(text)))).toEqual(inOrder)
})
