import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { startSilentAfterGreeting } from '../support/network/silent-after-greeting.ts'
import { postJson } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, type Sections, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 20 }
const STOPPING = { status: 409, body: { detail: 'the relay is stopping' } }

/** Starts a relay, and begins to move its store. `answer` is the answer to that request. */
async function startMoving(to: string, { env = {}, ...sections }: Sections & { readonly env?: NodeJS.ProcessEnv } = {}) {
  const relay = await runRelay(writeConfig(temporaryFolder(), NO_CARRIER, sections), env)
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  return { ...relay, answer: postJson(asker, '/relay/store/move', { to }) }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Makes a folder with an `sh` that hangs if its arguments contain this name. `untilItHangs` returns the id of the process. */
function shellThatHangsAt(name: string) {
  const folder = temporaryFolder()
  const [shell, sign] = [join(folder, 'sh'), join(folder, 'hangs')]
  const hang = `echo 0; echo $$ > '${sign}.part'; mv '${sign}.part' '${sign}'; exec sleep 1000`
  writeFileSync(shell, `#!/bin/sh\ncase "$*" in *${name}*) ${hang};; esac\nexec /bin/sh "$@"\n`)
  chmodSync(shell, 0o755)
  return {
    folder,
    async untilItHangs() {
      await vi.waitFor(() => expect(existsSync(sign)).toBe(true), LATE)
      return Number(readFileSync(sign, 'utf8'))
    },
  }
}

test('X1: if a move hangs while opening a file, a stop ends the relay and the hanging process', async () => {
  const shell = shellThatHangsAt('never.db')
  const env = { PATH: `${shell.folder}:${process.env.PATH}` }
  await using relay = await startMoving(`sqlite:${join(temporaryFolder(), 'never.db')}`, { env })
  const pid = await shell.untilItHangs()
  expect(isRunning(pid)).toBe(true)
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
  expect(await relay.answer).toMatchObject(STOPPING)
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), LATE)
})

test('X1: a stop ends a relay whose move waits for a silent server', async () => {
  const { url } = await createDatabase('nothing')
  const silent = await startSilentAfterGreeting(url)
  await using relay = await startMoving(silent.url, { secrets: (await onPostgres(url)).secrets })
  await silent.untilAsked()
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
  expect(await relay.answer).toMatchObject(STOPPING)
})
