import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startPostgres } from '../../../src/cli/demo/postgres/throwaway-server.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { pushBody } from '../../support/builders.ts'
import { storedNumber } from '../../support/stored-rows.ts'
import { incomingPush, openStore } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const pushOf = (id: string, text: string) => incomingPush(pushBody({ trackingIds: [id], texts: { en: text } }), NOON)

/** Does something as often as it takes: the first connections are those of the server before. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  const done: { readonly value: T }[] = []
  const tryOnce = async () => {
    if (done.length === 0) done.push({ value: await work() })
    return done.length
  }
  await expect.poll(tryOnce, { timeout: 60_000 }).toBe(1)
  const [first] = done
  if (first === undefined) throw new Error('nothing was done')
  return first.value
}

test('S18: a server back without its last commits gives row ids anew; no parcel gets the words of another', {
  timeout: 240_000,
}, async () => {
  await using server = await startPostgres()
  const place = server.url()
  const [data, before] = [join(server.folder, 'data'), join(server.folder, 'before')]
  const { reads, record } = await openStore(NOON, postgres, place)
  const textOf = async (id: string) => (await reads.findParcel(id))?.entries[0]?.texts.en?.detailed
  await record(pushOf('1001', 'Kept'))
  await server.stop()
  execFileSync('cp', ['-a', data, before])
  await server.start()
  await again(() => record(pushOf('1002', 'Lost')))
  expect(await again(() => textOf('1002'))).toBe('Lost')

  await server.stop('immediate')
  execFileSync('rm', ['-rf', data])
  execFileSync('cp', ['-a', before, data])
  await server.start()
  const other = await openStore(NOON, postgres, place)
  await other.record(pushOf('1003', 'Other'))

  expect(await again(() => textOf('1003'))).toBe('Other')
  expect(await again(() => textOf('1002'))).toBeUndefined()
  await again(() => record(pushOf('1004', 'Lost')))
  expect([await textOf('1001'), await textOf('1003'), await textOf('1004')]).toEqual(['Kept', 'Other', 'Lost'])
  expect(await storedNumber(place, 'select count(*) from inbox')).toBe(3)
})
