import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkPushBody, isCheckPush } from '../../../../src/core/domain/ingest/parse-push.ts'

test('only the exact body of a check push counts as a check, wherever it lies in a buffer', () => {
  const body = Buffer.from(checkPushBody(randomUUID()))
  expect(isCheckPush(body)).toBe(true)
  expect(isCheckPush(Buffer.concat([Buffer.from('x'), body]).subarray(1))).toBe(true)
  for (const other of [`${body.toString()} `, body.toString().replace('Check', 'check'), '{"status":"Ingested"}', ''])
    expect(isCheckPush(Buffer.from(other))).toBe(false)
})
