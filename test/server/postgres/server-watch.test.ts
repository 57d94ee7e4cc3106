import { expect, test } from 'vitest'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { watchServer } from '../../../src/server/postgres/server-watch.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const POOL = { connectionsMax: 2, connectTimeoutMs: 30_000, answerTimeoutMs: 30_000 }

/** The requests to a server fail when it has been silent for this many milliseconds. */
const OWED_MS = 1000

test('S18: pools under one watch fail together within a second, and close at once', async () => {
  const { url } = await createDatabase('nothing')
  const proxy = await startDatabaseProxy(url)
  const watch = watchServer(proxy.through)
  const [used, fresh] = [watch.openPool(POOL), watch.openPool(POOL)]
  expect((await used.run(() => used.pool.query('select 1 as one'))).rows).toEqual([{ one: 1 }])
  proxy.swallow()
  const fromMs = performance.now()
  const asked = [used, fresh].map(({ pool, run }) => run(() => pool.query('select 1')))
  const failures = (await Promise.allSettled(asked)).map((result) => (result.status === 'rejected' ? result.reason : null))
  expect(failures).toEqual([expect.any(StorageFailure), expect.any(StorageFailure)])
  expect(performance.now() - fromMs).toBeLessThan(10 * OWED_MS)
  await Promise.all([used, fresh].map((one) => one.close()))
  expect(performance.now() - fromMs).toBeLessThan(10 * OWED_MS)
})

test('pools wait for a statement that takes longer than a second, and close normally', async () => {
  const { url } = await createDatabase('nothing')
  const { pool, run, close } = watchServer(url).openPool(POOL)
  expect((await run(() => pool.query("select 'slept' as what from pg_sleep(1.5)"))).rows).toEqual([{ what: 'slept' }])
  await close()
  await close()
})
