import { dirname } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Engine } from '../../src/core/store/contract.ts'
import { flightKey } from '../../src/server/postgres/polling/postgres-shared-carrier.ts'
import { openSharedCarrier, postgres } from '../../src/server/postgres/postgres-engine.ts'
import { compactStore } from '../../src/upkeep/retention/compact.ts'
import { answersWith, filesWith, searchForNames, tablesWith } from '../support/erasure/traces.ts'
import { AT_REST, fillWorld, type Names, openToErase, type StoreToErase } from '../support/erasure/world-to-erase.ts'
import { startRequestServer } from '../support/network/request-server.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, ask, logIn, startTestRelay } from '../support/relay/relay.ts'
import { DAY_MS, NO_CARRIER } from '../support/runner/constants.ts'
import { casesOf } from '../support/runner/long-form.ts'
import { drawWith, seeded } from '../support/runner/seeded.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { copyPlace, engines, newPlace } from '../support/store/engines.ts'
import { storedRows } from '../support/store/stored-rows.ts'

const DAYS = 60

/** Where the worlds have identifiers as parts of longer words. */
const UNCLEAR_IN = { tables: ['inbox', 'operator_event'], answers: /^\/relay\/(?:inbox|operator-events)/ }

class Killed extends Error {}

/** Returns the verbs of an erasure, which end before or after one of their calls, as if the process were killed there. */
function killedAt(writes: StoreToErase['writes'], step: number): StoreToErase['writes'] {
  let steps = 0
  const count = () => {
    steps += 1
    if (steps >= step) throw new Killed('killed')
  }
  const verbs = ['findErasable', 'eraseParcels', 'searchMentions', 'unfinishedErasures', 'endErasures', 'cleanStorage'] as const
  const ending = verbs.map((verb) => {
    const call = async (request: never) => {
      count()
      const result: unknown = await writes[verb](request)
      count()
      return result
    }
    return [verb, call] as const
  })
  return { ...writes, ...Object.fromEntries(ending) }
}

/** Starts a relay on a store, and returns how to ask it. */
async function relayOn(place: string, carrierUrl = NO_CARRIER) {
  const isFile = !place.startsWith('postgres://')
  const relay = await startTestRelay(isFile ? dirname(place) : temporaryFolder(), carrierUrl, {
    poll: { cron: '0 0 1 1 *' },
    secrets: { atRestKeys: [AT_REST.toString('base64')] },
    ...(isFile ? {} : { store: place }),
  })
  onTestFinished(() => relay.stop())
  const token = await logIn(relay.internalUrl, ADMIN)
  const operate = await operatorOf(relay)
  return { stop: relay.stop, operate, asks: async (path: string) => await (await ask(relay.internalUrl, token, path)).text() }
}

/** What apps and operators are answered about parcels. */
async function answersAbout({ asks }: Awaited<ReturnType<typeof relayOn>>, parcels: readonly Names[]): Promise<readonly string[]> {
  const paths = parcels
    .flat()
    .flatMap((name) => [
      ...['all', 'latest'].map((part) => `/v1/status/${name}/${part}`),
      `/relay/parcels/${name}`,
      `/relay/deliveries?parcel=${name}&limit=500`,
    ])
  // A question about a parcel may cause a poll, which no carrier answers.
  return await Promise.all(paths.map(async (path) => `${path} ${(await asks(path)).replaceAll(/"cadence":\{[^}]*\}/g, '')}`))
}

const seedsOn = ({ name }: Engine) => Array.from({ length: name === postgres.name ? casesOf(15, 1) : casesOf(60, 3) }, (_, seed) => seed)

/** Asks for parcels at a replica of PostgreSQL: some questions are under way, some have ended, of some the asking replica was killed. */
async function plantFlights(
  engine: Engine,
  place: string,
  { below, pick }: ReturnType<typeof drawWith>,
  names: readonly string[],
): Promise<void> {
  if (engine.name !== postgres.name) return
  const { flights, close } = openSharedCarrier(place)
  for (const key of names) {
    const turn = await flights.take({ key, leaseMs: pick([-1, 5000, 600_000]), waited: false, notFoundForMs: 0 })
    if (below(3) === 0 && turn.kind === 'taken')
      await flights.end({ key, holder: turn.holder, end: { kind: 'not_found', retryAfterMs: null } })
  }
  await close()
}

/** The erased identifiers of which a question to the carrier is still in the store. Its row has a digest of the identifier. */
async function asksAbout(engine: Engine, place: string, names: readonly string[]): Promise<readonly string[]> {
  if (engine.name !== postgres.name) return []
  const rows = await storedRows<{ readonly key: string }>(place, 'select key from flight')
  return names.filter((name) => rows.some(({ key }) => key === flightKey(name)))
}

describe.each(engines)('in random worlds on $name', (engine) => {
  test.each(seedsOn(engine))('whatever is killed, an erasure leaves nothing or says where: seed %i', async (seed) => {
    const draw = drawWith(seeded(seed))
    const nowMs = Date.now()
    const place = await newPlace(engine)
    const first = await openToErase(engine, place, nowMs - DAYS * DAY_MS)
    const { gone, kept, isUnclear } = await fillWorld(first, draw)
    await first.reads.close()
    await first.writes.close()
    const before = await relayOn(place)
    const told = await answersAbout(before, kept)
    await before.stop()

    const named = gone.flat()
    const search = searchForNames(named)
    expect((await tablesWith(search, place)).length).toBeGreaterThan(5)
    await plantFlights(engine, place, draw, named)
    if (engine.name === postgres.name) expect(await asksAbout(engine, place, named)).not.toEqual([])
    const order = gone.map((names) => draw.pick(names))
    const killed = await openToErase(engine, place, nowMs)
    await killed.forget(order, killedAt(killed.writes, draw.below(30))).catch((error: unknown) => expect(error).toBeInstanceOf(Killed))
    const copy = await copyPlace(engine, place)
    const again = await openToErase(engine, copy, nowMs)
    for (const names of gone) if (draw.below(2) === 0) await again.push({ trackingIds: [draw.pick(names)], status: 'Late' })
    const report = await again.forget(order)
    const { storage } = await again.forget(order)
    await again.reads.close()
    await again.writes.close()

    const after = await relayOn(copy)
    expect(await asksAbout(engine, copy, named)).toEqual([])
    const [tables, files, answers] = [await tablesWith(search, copy), filesWith(search, copy), await answersWith(search, after.asks)]
    const isToldOf = report.unreadable > 0
    if (!isUnclear) expect(report.unreadable).toBe(0)
    expect(tables.filter((table) => !(isToldOf && UNCLEAR_IN.tables.includes(table)))).toEqual([])
    expect(answers.filter((path) => !(isToldOf && UNCLEAR_IN.answers.test(path)))).toEqual([])
    if (storage.state === 'clean') expect(files).toEqual([])
    expect(await answersAbout(after, kept)).toEqual(told)
    await after.stop()
    if (engine.name === postgres.name || isToldOf) return
    await compactStore(copy)
    expect(filesWith(search, copy)).toEqual([])
  })

  test('a running relay shows nothing of an erased parcel, and asks nobody about it', async () => {
    const draw = drawWith(seeded(7))
    const place = await newPlace(engine)
    const store = await openToErase(engine, place, Date.now() - DAYS * DAY_MS)
    const { gone } = await fillWorld(store, draw)
    await store.reads.close()
    await store.writes.close()
    const search = searchForNames(gone.flat())
    const asked: string[] = []
    const carrier = await startRequestServer(({ url = '' }, _, response) => {
      asked.push(decodeURIComponent(url))
      if (url.startsWith('/login') || url.includes('auth')) return void response.end(JSON.stringify({ token: 'abc' }))
      const name = gone.flat().find((one) => url.includes(one)) ?? 'nobody'
      response.writeHead(draw.pick([302, 403, 404, 422, 500]), name, { location: `/moved/${name}`, 'x-parcel': name })
      response.end(JSON.stringify({ error: `nothing is known of ${name}` }))
    })
    onTestFinished(() => carrier[Symbol.asyncDispose]())
    const relay = await relayOn(place, `http://127.0.0.1:${carrier.port}`)
    for (const name of gone.flat()) {
      await relay.operate('POST', `/relay/parcels/${name}/refresh`)
      for (const part of ['all', 'latest?language=fi']) await relay.asks(`/v1/status/${name}/${part}`)
    }
    expect([search(asked.join(' ')).length > 0, (await answersWith(search, relay.asks)).length > 5]).toEqual([true, true])
    for (const [name] of gone) expect((await relay.operate('DELETE', `/relay/parcels/${name}`)).status).toBe(200)
    asked.length = 0
    for (const name of gone.flat()) {
      expect((await relay.operate('POST', `/relay/parcels/${name}/refresh`)).status).not.toBe(200)
      await relay.asks(`/v1/status/${name}/all`)
    }
    const answers = await answersWith(search, relay.asks)
    expect(answers.filter((path) => !UNCLEAR_IN.answers.test(path))).toEqual([])
    expect((await tablesWith(search, place)).filter((table) => !UNCLEAR_IN.tables.includes(table))).toEqual([])
    expect(await asksAbout(engine, place, gone.flat())).toEqual([])
    expect(search(asked.join(' '))).toEqual([])
  })
})
