import { expect, onTestFinished } from 'vitest'
import { type Answered, distinctPushes } from '../support/network/push-load.ts'
import { startDatabaseProxy } from '../support/network/tcp-proxy.ts'
import { textOf } from '../support/relay/caught-up.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push, type Sections, writeConfig } from '../support/relay/relay.ts'
import { type RunningProcess, runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

/** The longest time in milliseconds until the relay must work again after an outage. */
export const RECOVERY_MS = withinOwed(5000)

export async function startOn(url: string, sections: Sections = {}) {
  const relay = await runRelay(writeConfig(temporaryFolder(), NO_CARRIER, { ...sections, ...(await onPostgres(url)) }))
  onTestFinished(() => relay[Symbol.asyncDispose]())
  return { relay, asker: { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) } }
}

export async function startThroughProxy() {
  const { url } = await createDatabase('nothing')
  const proxy = await startDatabaseProxy(url)
  return { proxy, ...(await startOn(proxy.through)) }
}

/** Waits until pushes, reads and readiness work again, and resolves with the milliseconds that this took. */
export async function recovery(relay: RunningProcess, asker: { readonly internalUrl: string; readonly token: string }): Promise<number> {
  const fromMs = performance.now()
  const pushes = distinctPushes(1)
  const statuses = async () => [
    (await push(relay.publicUrl, pushes.next())).status,
    (await ask(asker.internalUrl, asker.token, '/v1/status/880000/all')).status,
    (await ask(asker.internalUrl, asker.token, '/relay/endpoints')).status,
    (await fetch(`${relay.internalUrl}/readyz`)).status,
  ]
  await expect.poll(statuses, { timeout: 60_000, interval: 50 }).toEqual([200, 200, 200, 200])
  return performance.now() - fromMs
}

/** Expects that every push got a 200, or a 503 with a `Retry-After`, and that every push with a 200 is stored. */
export async function expectNothingLost(
  answers: readonly Answered[],
  pushes: ReturnType<typeof distinctPushes>,
  asker: Parameters<typeof textOf>[0],
) {
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) > 0))).toEqual([])
  const accepted = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  const histories = await Promise.all(pushes.parcels(accepted).map((id) => textOf(asker, id, 'all', 'en')))
  const all = histories.join('\n')
  expect(accepted.filter((body) => !all.includes(pushes.entryOf(body)))).toEqual([])
  return { accepted, refused }
}
