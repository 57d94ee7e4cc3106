import { expect, test, vi } from 'vitest'
import { distinctPushes, startLoad } from '../../support/network/push-load.ts'
import { textOf } from '../../support/relay/caught-up.ts'
import { endedJob, startMove } from '../../support/relay/moves-of-relay.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { seeded } from '../../support/runner/seeded.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const KILLS = LONG ? 40 : 2
/** The number of pushes that are answered while a store of this size is moved, including refused ones. */
const PUSHES_IN_MOVE = 2000

test(`killed ${KILLS} times in moves, a relay starts on the store in use and has every push`, async () => {
  const folder = temporaryFolder()
  const database = (await createDatabase('nothing')).url
  const config = writeConfig(folder, NO_CARRIER, { secrets: (await onPostgres(database)).secrets })
  const random = seeded(20_261_125)
  // Use enough parcels that none becomes full.
  const pushes = distinctPushes(100)
  const acknowledged: string[] = []
  let moves = 0
  for (let kill = 0; kill <= KILLS; kill++) {
    await using relay = await runRelay(config)
    const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
    const histories = await Promise.all(pushes.parcels(acknowledged).map((id) => textOf(asker, id, 'all', 'en')))
    const known = new Set(histories.join('\n').match(/"location":"Place \d+\."/g))
    expect(acknowledged.map(pushes.entryOf).filter((entry) => !known.has(entry))).toEqual([])
    // No job is left running: it was completed, or it failed with the relay.
    const isDone = await vi.waitFor(
      async () => {
        const jobs: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/jobs?limit=1')).json()
        if (kill > 0) expect(jobs).toMatchObject({ jobs: [{ state: expect.stringMatching(/^(?:done|failed)$/) }] })
        return JSON.stringify(jobs).includes('"state":"done"')
      },
      { timeout: 60_000 },
    )
    if (kill > 0 && isDone) moves += 1
    const to = moves % 2 === 0 ? (moves === 0 ? database : (await createDatabase('nothing')).url) : `sqlite:${folder}/moved-${moves}.db`
    const load = startLoad(relay.publicUrl, 8, pushes.next, { isPatient: true })
    await load.untilAnswered(100)
    const job = await startMove(asker, to)
    if (kill === KILLS) expect(await endedJob(asker, job)).toMatchObject({ state: 'done' })
    // The kill comes at a random moment of the move.
    else await load.untilAnswered(100 + Math.floor(random() * PUSHES_IN_MOVE))
    relay.process.kill('SIGKILL')
    await relay.ended
    const answers = await load.stop()
    acknowledged.push(...answers.filter(({ status }) => status === 200).map(({ body }) => body))
  }
})
