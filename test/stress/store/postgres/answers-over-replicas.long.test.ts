import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { postgres } from '../../../../src/server/postgres/postgres-engine.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { seededObservations, trackingIdOf, trackingNumberOf } from '../../../support/history/seeded-observations.ts'
import { openAnswersAt } from '../../../support/network/answers-at.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { LONG } from '../../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { newPlace } from '../../../support/store/engines.ts'
import { withClient } from '../../../support/store/postgres-client.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const LATER = NOON + 30 * 86_400_000
const RACES = LONG ? 200 : 40
const STEPS = LONG ? 400 : 100

type Store = Awaited<ReturnType<typeof openStore>>

/** Answers from the cache and the store alone, as of a month after noon. The carrier is never asked. */
async function openAnswers(store: Store, cacheBytes: number) {
  const sources: string[] = []
  const answers = await openAnswersAt({
    ...store,
    nowMs: LATER,
    cacheBytes,
    served: (source) => void sources.push(source),
    serving: { fetchMissingLanguage: false, fetchUnknown: false },
  })
  onTestFinished(answers.close)
  return { get: answers.get, sources }
}

/**
 * Triggers that refuse a transaction if it has changed what is served about a parcel, but has not raised the parcel's version. A version is
 * the time in microseconds at which it was written, so a raised version is later than the start of the transaction.
 */
const GUARD = `
  create function guard() returns trigger language plpgsql as $$
    declare began bigint := extract(epoch from now()) * 1000000;
    begin
      if exists (select from parcel where id = coalesce(new.parcel_id, old.parcel_id) and version < began) then
        raise exception 'a row of % changed and not the version of its parcel', tg_table_name;
      end if;
      return null;
    end $$;
  create constraint trigger guarded after insert or update or delete on sighting initially deferred for each row execute function guard();
  create constraint trigger guarded after insert or update or delete on answer initially deferred for each row execute function guard();
  create constraint trigger guarded after insert or update of parcel_id, is_tracking_id or delete on identifier initially deferred
    for each row execute function guard();
  create function guard_parcel() returns trigger language plpgsql as $$ begin raise exception 'a parcel changed and not its version'; end $$;
  create trigger guarded after update on parcel for each row when (new.version <= old.version and
    (new.last_seen_at_ms is distinct from old.last_seen_at_ms or (new.next_poll_at_ms is null) <> (old.next_poll_at_ms is null)))
    execute function guard_parcel();`

/** Opens two replicas on one database, each with a cache. `afresh` answers without a cache. */
async function openReplicas() {
  const place = await newPlace(postgres)
  const one = await openStore(NOON, postgres, place)
  await withClient(place, (client) => client.query(GUARD))
  const other = await openStore(NOON, postgres, place)
  return {
    one,
    other,
    here: await openAnswers(one, 10_000_000),
    there: await openAnswers(other, 10_000_000),
    afresh: await openAnswers(one, 0),
  }
}

const PARCELS = 6
const identifiers = Array.from({ length: PARCELS }, (_, nth) => [trackingNumberOf(nth), trackingIdOf(nth), trackingIdOf(nth, 1)]).flat()

function createVerbs(random: () => number) {
  const observations = seededObservations(4711, PARCELS)
  const { below } = drawWith(random)
  const identifier = () => identifiers[below(identifiers.length)] ?? ''
  const parcelId = async ({ reads }: Store, of: string) => (await reads.inspectParcel(of))?.state.parcelId ?? null
  const record = async ({ writes, now }: Store) =>
    void (await writes.record(Array.from({ length: 1 + below(4) }, () => observations.next(now()))))
  const verbs: readonly ((store: Store) => Promise<void>)[] = [
    record,
    record,
    record,
    async ({ writes, now }) => void (await writes.record([observations.join(below(PARCELS), below(PARCELS), now())])),
    async ({ writes }) => void (await writes.watch({ identifier: identifier(), nowMs: NOON })),
    async ({ writes }) => void (await writes.unwatch({ identifier: identifier() })),
    async ({ writes }) => await writes.noteNotPollable(identifier()),
    async (store) => {
      const id = await parcelId(store, identifier())
      if (id !== null) await store.writes.notePollFailure({ parcelId: id, kind: 'unknown', atMs: store.now(), retryAfterMs: 0 })
    },
    async (store) => {
      const id = await parcelId(store, identifier())
      if (id !== null) await store.writes.noteLanguageAsked({ parcelId: id, language: 'sv', knownTo: 0, answer: null })
    },
    async ({ reads, writes, now }) => {
      const { pushes } = await reads.listInbox({ state: 'quarantined', before: null, limit: 1 })
      for (const { inboxId } of pushes) await writes.reprocess({ inboxId, nowMs: now() })
    },
    async ({ writes, now }) =>
      void (await writes.shiftSchedule({ byMs: 1000, sinceMs: now(), nowMs: now(), afterParcelId: 0, limit: 100 })),
    async ({ writes, now }) => void (await writes.settleMissedPushes(now() + HOUR_MS)),
    async ({ writes, now }) => void (await writes.claimDuePolls({ nowMs: now(), limit: 2, leaseMs: 1000 })),
  ]
  const path = () => `/v1/status/${identifier()}/${random() < 0.5 ? 'all' : 'latest'}?language=${random() < 0.5 ? 'en' : 'sv'}`
  return { next: () => verbs[below(verbs.length)] ?? record, path }
}

test('after a write by either replica, the caches of both answer as the store does', async () => {
  const { one, other, here, there, afresh } = await openReplicas()
  const random = seeded(20_260_301)
  const { next, path } = createVerbs(random)
  for (let step = 0; step < STEPS; step++) {
    for (const { pass } of [one, other]) pass(Math.floor(random() * HOUR_MS))
    await next()(random() < 0.5 ? one : other)
    for (let question = 0; question < 4; question++) {
      const asked = path()
      const answers = [await here.get(asked), await there.get(asked)]
      const stored = await afresh.get(asked)
      expect([step, ...answers]).toEqual([step, stored, stored])
    }
  }
  expect([one, other].flatMap(({ errors }) => errors)).toEqual([])
  const of = (source: string) => there.sources.filter((from) => from === source).length
  expect([of('hit') > STEPS, of('not_found') > 10]).toEqual([true, true])
})

const timeOf = (nth: number) => new Date(NOON - 86_400_000 + nth * 1000).toISOString()
const pushOf = (trackingIds: readonly string[], nth: number) => incomingPush(pushBody({ trackingIds, eventTime: timeOf(nth) }), NOON)

/** Calls `read` repeatedly until `work` has ended. */
async function beside(read: () => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
  let isOver = false
  const reading = [0, 1].map(async () => {
    while (!isOver) await read()
  })
  await work()
  isOver = true
  await Promise.all(reading)
}

test(`an event that one replica records is in the other’s next answer, ${RACES} times`, async () => {
  const { one, here, there } = await openReplicas()
  const random = seeded(7)
  await one.record(pushOf(['1001'], 0))
  const path = '/v1/status/1001/all'
  await beside(
    () => Promise.all([here.get(path), there.get(path)]),
    async () => {
      for (let race = 1; race <= RACES; race++) {
        for (let turn = Math.floor(random() * 8); turn > 0; turn--) await nextTurn()
        await one.record(pushOf(['1001'], race))
        const { body } = await there.get(path)
        expect([race, body.includes(timeOf(race).slice(0, 19))]).toEqual([race, true])
      }
    },
  )
  expect(there.sources).toContain('hit')
})

test('a replica knows a new parcel as soon as the other replica has recorded it', async () => {
  const { one, there } = await openReplicas()
  for (let race = 0; race < RACES / 4; race++) {
    const path = `/v1/status/${20_000 + race}/latest`
    expect((await there.get(path)).status).toBe(404)
    await one.record(pushOf([String(20_000 + race)], race))
    expect([race, (await there.get(path)).status]).toEqual([race, 200])
  }
})

test('1.4: parcels that one replica joins are joined in the other’s next answer', async () => {
  const { one, there } = await openReplicas()
  for (let race = 0; race < RACES / 4; race++) {
    const ids = [`3${10_000 + race}`, `4${10_000 + race}`]
    const paths = ids.map((id) => `/v1/status/${id}/all`)
    await one.record(...ids.map((id, nth) => pushOf([id], nth)))
    for (const path of paths) for (let time = 0; time < 2; time++) expect((await there.get(path)).status).toBe(200)
    await one.record(pushOf(ids, 2))
    const [left, right] = [await there.get(paths[0] ?? ''), await there.get(paths[1] ?? '')]
    expect([race, left.body]).toEqual([race, right.body])
    for (const id of ids) expect(left.body).toContain(id)
  }
})
