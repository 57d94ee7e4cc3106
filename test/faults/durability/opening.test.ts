import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSqliteWriter } from '../../../src/core/store/sqlite/sqlite.ts'
import { SQLITE_HOOKS } from '../../../src/upkeep/sqlite-engine.ts'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { readStore } from '../../support/store/simulated-disk.ts'
import { spawnTraced } from '../../support/store/strace.ts'

async function filledStore(): Promise<string> {
  const path = join(temporaryFolder(), 'relay.db')
  await (await openSqliteWriter(path, SQLITE_HOOKS)).close()
  return path
}

const refusal = async (path: string): Promise<string> => {
  try {
    await (await openSqliteWriter(path, SQLITE_HOOKS)).close()
    return 'opened'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

test('S8: a missing folder is created', async () => {
  const path = join(temporaryFolder(), 'not', 'yet', 'relay.db')
  expect(await refusal(path)).toBe('opened')
  expect(existsSync(path)).toBe(true)
})

test('S8: the relay does not start on an empty or missing database that had data', async () => {
  const path = await filledStore()
  truncateSync(path, 0)
  expect(await refusal(path)).toMatch(new RegExp(`${path} is empty, but ${path}.marker shows that it held data`))
  expect(readFileSync(path)).toHaveLength(0)
  rmSync(path)
  expect(await refusal(path)).toMatch(new RegExp(`${path} is gone, but`))
  expect(existsSync(path)).toBe(false)
})

test('S8: the WAL of a database that is gone is not deleted', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  writeFileSync(`${path}-wal`, 'all that is left')
  expect(await refusal(path)).toContain(`${path}-wal shows that it held data`)
  expect(readFileSync(`${path}-wal`, 'utf8')).toBe('all that is left')
})

test('S8: a file that is not a database is named and left unchanged', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  writeFileSync(path, 'a letter to somebody, longer than a header of a database would be')
  expect(await refusal(path)).toContain(`${path} is not a SQLite database`)
  expect(readFileSync(path, 'utf8')).toContain('a letter to somebody')
  mkdirSync(`${path}.folder`)
  expect(await refusal(`${path}.folder`)).toContain(`${path}.folder`)
})

test('S8: a zeroed byte of the header is harmless or reported, and the file stays unchanged', async () => {
  const path = await filledStore()
  const whole = readFileSync(path)
  const refused: number[] = []
  for (let at = 0; at < 24; at++) {
    const broken = Buffer.from(whole)
    broken[at] = 0
    if (broken.equals(whole)) continue
    writeFileSync(path, broken)
    const said = await refusal(path)
    if (said === 'opened') continue
    refused.push(at)
    expect(said, `byte ${at}`).toContain(path)
    expect(readFileSync(path).equals(broken), `byte ${at} left as it is`).toBe(true)
  }
  expect(refused).toEqual(expect.arrayContaining([...Array(15).keys(), 16, 21, 22, 23]))
})

test('S8: a folder that cannot be written to is named, with exit code 1', async () => {
  const folder = temporaryFolder()
  const store = join(folder, 'store')
  mkdirSync(store)
  // Root may write to any folder, so remove that right. The relay still runs as root, because another user may have no access to this checkout.
  const unprivileged = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []
  chmodSync(store, 0o555)
  const started = spawnTraced(folder, { wrapper: unprivileged, sections: { store: `sqlite:${join(store, 'relay.db')}` } })
  await expect(started).rejects.toMatchObject({ code: 1, message: expect.stringContaining(`${join(store, 'relay.db')} cannot be opened`) })
})

testWith('strace')('S7: if the disk cannot be read at the start, the relay names the path and ends', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'relay.db')
  const relay = await spawnTraced(folder)
  const bodies = distinctPushes(20, 'readable')
  expect(await pushPipelined(relay.publicUrl, bodies, 8)).toEqual(bodies.map(() => 200))
  await relay.kill()
  copyFileSync(path, join(folder, 'before'))
  // Fails SQLite's first reads of the file. The relay itself reads the header with another system call.
  for (const when of byForm(['2+'], ['1+', '2+'])) {
    const strace = ['-P', path, '-e', 'trace=pread64', '-e', `inject=pread64:error=EIO:when=${when}`, '-o', join(folder, 'trace')]
    await expect(spawnTraced(folder, { strace })).rejects.toMatchObject({ code: 1, message: expect.stringContaining(path) })
  }
  expect(readFileSync(path).equals(readFileSync(join(folder, 'before')))).toBe(true)
  const { bodies: kept, damage } = readStore(path)
  expect({ damage, kept: kept.size }).toEqual({ damage: null, kept: bodies.length })
})

test('S11: a second relay on a store ends and names the first’s pid, and a kill frees the lock', async () => {
  const folder = temporaryFolder()
  const first = await spawnTraced(folder)
  const second = spawnTraced(folder)
  await expect(second).rejects.toMatchObject({
    code: 1,
    message: expect.stringContaining(`already running on ${join(folder, 'relay.db')}`),
  })
  await expect(second).rejects.toThrow(new RegExp(`pid ${first.process.pid}\\b`))
  await first.kill()
  const third = await spawnTraced(folder)
  await third.kill()
})
