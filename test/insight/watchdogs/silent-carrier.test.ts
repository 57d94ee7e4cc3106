import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import { watchdogDuty } from '../../../src/insight/watchdogs/watchdogs.duty.ts'
import { countWaiting } from '../../../src/insight/watchdogs/watchdogs.rows.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { engines } from '../../support/store/engines.ts'
import { incomingPush } from '../../support/store/write-side.ts'

const idOf = (nth: number) => `SILENT${100_000 + nth}`
/** Every tenth parcel is truly silent; of the others the carrier had more to tell. */
const isSilent = (identifier: string) => identifier.endsWith('0')

/** A carrier, and a relay's watchdogs on a store of so many parcels. The clock goes a second per pass. */
async function openSilent(engine: Engine, parcels: number) {
  const store = await openWatched(engine, [aRule({ past: false })])
  const { writes, reads, now } = store
  const breaker = { state: 'closed', restMs: 0, sinceMs: undefined as number | undefined }
  const world = { isDown: false, isQuiet: false, asked: [] as string[] }
  const parts = {
    write: writes,
    reads,
    clock: { now, monotonic: now },
    log: { debug: (fields: object) => expect.fail(String(Object.values(fields)[0])) },
    settings: () => ({ watchdogs: [aRule()], upstream: { concurrency: 10 } }),
    wakeDispatcher: () => undefined,
    retired: () => undefined,
    isQuiet: () => world.isQuiet,
    replicas: { count: () => 1, list: async () => [] },
    duties: { inTurn: <Value>(work: () => Promise<Value>) => work(), stopping: new AbortController().signal },
    carrier: {
      state: () => ({
        breaker: world.isDown ? { ...breaker, state: 'open', restMs: 1000, sinceMs: NOON } : breaker,
        credentials: 'accepted',
        lastAnswerAtMs: now(),
        lastFailure: null,
      }),
    },
    polling: { underWay: { during: (_parcelId: number, work: () => Promise<unknown>) => work() } },
    history: {
      refresh: {
        async poll({ identifiers: [identifier = ''] }: { identifiers: readonly string[] }) {
          world.asked.push(identifier)
          const entry = (status: string, atMs: number) => ({
            status,
            detailedStatus: status,
            eventTimestamp: `${new Date(atMs).toISOString().slice(0, 19)}Z`,
          })
          const statuses = [...(isSilent(identifier) ? [] : [entry('TerminalArrived', NOON + HOUR_MS)]), entry('Ingested', NOON)]
          const observation = aPoll({ asked: identifier, trackingIds: [identifier], statuses, askedAtMs: now() })
          await writes.record([{ kind: 'poll', observation, watch: false }])
          return 'recorded'
        },
      },
    },
  }
  // It has what the duty uses of these parts.
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above
  const duty = watchdogDuty(parts as unknown as Parameters<typeof watchdogDuty>[0])
  for (let nth = 0; nth < parcels; nth += 500)
    await store.record(
      ...Array.from({ length: Math.min(500, parcels - nth) }, (_, at) =>
        incomingPush(
          pushBody({
            status: 'Ingested',
            detailedStatus: 'Ingested',
            eventTime: new Date(NOON).toISOString(),
            trackingIds: [idOf(nth + at)],
          }),
          now(),
        ),
      ),
    )
  return {
    ...store,
    world,
    waiting: () => countWaiting(reads.session),
    /** Passes until nothing more is due. */
    async passes() {
      while ((await duty.pass()) === 'busy') store.pass(1)
      store.pass(MINUTE_MS)
    },
  }
}

describe.each(engines)('a silent carrier, on $name', (engine) => {
  test('9.5: while the relay is deaf nothing is told; each parcel is asked about once, and only what is silent is told, once', async () => {
    const parcels = byForm(12, 1000, 100_000)
    const { world, pass, passes, waiting, told, reads } = await openSilent(engine, parcels)
    const events = async () =>
      (await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 10 })).map(({ event }) => event)
    world.isDown = true
    pass(50 * HOUR_MS)
    await passes()
    expect([await waiting(), await told(), world.asked.length, await events()]).toEqual([parcels, [], 0, []])
    pass(HOUR_MS)
    await passes()
    expect([await told(), await events()]).toEqual([[], ['watchdogs_held']])
    world.isDown = false
    world.isQuiet = true
    await passes()
    expect([await told(), world.asked.length]).toEqual([[], 0])
    world.isQuiet = false
    await passes()
    expect(await events()).toEqual(['watchdogs_resumed', 'watchdogs_held'])
    expect([new Set(world.asked).size, world.asked.length, await waiting()]).toEqual([parcels, parcels, 0])
    const news: string[] = []
    for (let [after, ended] = [0, false]; !ended; ) {
      const page = await reads.readFeed({ after, limit: 1000 })
      for (const item of page.items) if ('breach' in item && item.breach !== null) news.push(`${item.kind} ${item.parcel.identifiers[0]}`)
      after = page.next
      ended = page.ended
    }
    const silent = Array.from({ length: parcels }, (_, nth) => idOf(nth)).filter(isSilent)
    expect(news.sort()).toEqual(silent.map((identifier) => `stalled ${identifier}`).sort())
  })
})
