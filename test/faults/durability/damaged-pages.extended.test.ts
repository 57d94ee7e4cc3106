import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ask, logIn, push } from '../../support/relay/relay.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { tracedRelayOfTest } from '../../support/store/strace.ts'

/** Overwrites the first page of an index with zeros. */
function damageIndex(store: string, index: string): void {
  const db = new Database(store, { readonly: true })
  const page = Number(db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck().get(index))
  const size = Number(db.pragma('page_size', { simple: true }))
  db.close()
  const file = openSync(store, 'r+')
  writeSync(file, Buffer.alloc(size), 0, size, (page - 1) * size)
  closeSync(file)
}

test('S7: pushes that meet a damaged page get 503, and so does /readyz', async () => {
  const folder = temporaryFolder()
  const first = await tracedRelayOfTest(folder)
  const early = distinctPushes(20, 'early')
  expect(await pushPipelined(first.publicUrl, early, 4)).toEqual(early.map(() => 200))
  first.process.kill('SIGTERM')
  await first.ended

  damageIndex(join(folder, 'relay.db'), 'inbox_by_digest')
  const relay = await tracedRelayOfTest(folder)
  const ready = async () => {
    const answer = await fetch(`${relay.internalUrl}/readyz`)
    return { status: answer.status, text: await answer.text() }
  }
  const [late] = distinctPushes(1, 'late')
  expect((await push(relay.publicUrl, late ?? '')).status).toBe(503)
  expect(await ready()).toEqual({
    status: 503,
    text: expect.stringContaining('pushes cannot be stored (the file of the store is damaged)'),
  })
  expect((await ask(relay.internalUrl, await logIn(relay.internalUrl), '/v1/status/5001/all')).status).toBe(200)
  expect((await (await operatorOf(relay))('PUT', '/relay/parcels/9001/watch')).status).toBe(201)
  expect((await ready()).status).toBe(503)
})
