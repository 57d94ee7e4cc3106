import { expect, test, vi } from 'vitest'
import { distinctPushes, startLoad } from '../../support/network/push-load.ts'
import { textOf } from '../../support/relay/caught-up.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ADMIN, logIn, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { startOwnServer } from '../../support/store/postgres-database.ts'

const CYCLES = LONG ? 20 : 1
const AT_ONCE = 16
const SOME = 100

test(`S1, S18: kills of relay and server lose no answered push, ${CYCLES} times each`, async () => {
  await using server = await startOwnServer()
  const config = writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(server.url()))
  const pushes = distinctPushes(10)
  const acknowledged: string[] = []
  for (let cycle = 0; cycle <= CYCLES; cycle++) {
    await using relay = await runRelay(config)
    const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
    const histories = await Promise.all(pushes.parcels(acknowledged).map((id) => textOf(asker, id, 'all', 'en')))
    const all = histories.join('\n')
    expect(acknowledged.map(pushes.entryOf).filter((entry) => !all.includes(entry))).toEqual([])
    if (cycle === CYCLES) break
    const load = startLoad(relay.publicUrl, AT_ONCE, pushes.next)
    await load.untilAnswered(SOME)
    await server.stop('immediate')
    await load.untilAnswered(3 * SOME)
    await server.start()
    // The relay accepts pushes again without a restart.
    await vi.waitFor(async () => expect((await fetch(`${relay.internalUrl}/readyz`)).status).toBe(200), { timeout: 60_000 })
    await load.untilAnswered(load.answered() + 2 * SOME)
    relay.process.kill('SIGKILL')
    const answers = await load.stop()
    await relay.ended
    expect(answers.filter(({ status }) => ![200, 503, null].includes(status))).toEqual([])
    const accepted = answers.filter(({ status }) => status === 200)
    expect(accepted.length).toBeGreaterThan(SOME)
    acknowledged.push(...accepted.map(({ body }) => body))
  }
})
