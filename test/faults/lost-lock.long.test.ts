import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { lockStore } from '../../src/core/store/sqlite/lock.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const RELOCKED = 'the lock file of the store was deleted or replaced: the relay locks the new one, or ends if another relay holds it'

test('S11: a relay whose lock file is deleted locks a new one', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER)
  await using relay = await runRelay(config)
  const warned = relay.logged(RELOCKED)
  rmSync(join(folder, 'relay.db.lock'))
  await warned
  await expect(runRelay(config)).rejects.toThrow('the relay ended with 1')
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
}, 120_000)

test('S11: a relay whose lock file is replaced by that of another process exits with 1', async () => {
  const folder = temporaryFolder()
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER))
  const other = lockStore(join(folder, 'other'))
  onTestFinished(other.release)
  renameSync(join(folder, 'other.lock'), join(folder, 'relay.db.lock'))
  expect(await relay.ended).toEqual({ code: 1, signal: null })
}, 120_000)
