import { expect, onTestFinished, test } from 'vitest'
import { openReplicaTable } from '../../../src/server/postgres/admin/replica-table.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const replica = (name: string, atRestKeys: readonly string[], ttlMs = 60_000) => ({
  name,
  atRestKeys,
  ttlMs,
  version: '1',
  configFingerprint: 'f',
  endpoints: [],
  configuredAtMs: null,
})

async function openTable() {
  const table = openReplicaTable((await createDatabase()).url, { answerTimeoutMs: 5000 })
  onTestFinished(() => table.close())
  return table
}

test('a replica without the keys of another is refused, and the error names the other', async () => {
  const table = await openTable()
  await table.register(replica('host/1', ['old', 'older']))
  for (const keys of [['new'], ['new', 'old'], ['older', 'x']]) {
    await expect(table.register(replica('host/2', keys))).rejects.toThrow(
      /^secrets\.atRestKeys: another relay on this database, host\/1, has other keys, .* Give both the same keys\./,
    )
  }
  expect((await table.list()).map(({ name }) => name)).toEqual(['host/1'])
})

test('a key is replaced while replicas run: add the new one, put it first, remove the old one', async () => {
  const table = await openTable()
  let running = (await table.register(replica('first', ['old']))).id
  for (const keys of [['old', 'new'], ['new', 'old'], ['new']]) {
    const { id } = await table.register(replica('next', keys))
    await table.remove(running)
    running = id
  }
  expect(await table.list()).toHaveLength(1)
})

test('the keys are changed by reloading one replica after the other, and none may skip a step', async () => {
  const table = await openTable()
  const [one, two] = [(await table.register(replica('one', ['old']))).id, (await table.register(replica('two', ['old']))).id]
  const configure = (id: number, atRestKeys: readonly string[]) => table.configure(id, { ...replica('', atRestKeys) })
  await expect(configure(one, ['new', 'old'])).rejects.toThrow(/another relay on this database, two, has other keys/)
  for (const keys of [['old', 'new'], ['new', 'old'], ['new']]) for (const id of [one, two]) await configure(id, keys)
  expect((await table.list()).map(({ atRestKeys }) => atRestKeys)).toEqual([['new'], ['new']])
})

test('the keys of a replica that is gone do not count', async () => {
  const table = await openTable()
  await table.register(replica('killed', ['lost'], 0))
  await table.register(replica('next', ['new']))
})
