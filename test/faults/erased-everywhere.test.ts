import { dirname } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Engine } from '../../src/store/contract.ts'
import { postgres } from '../../src/store/postgres/postgres-engine.ts'
import { compactStore } from '../../src/store/sqlite/compact.ts'
import { answersWith, filesWith, searchForNames, tablesWith } from '../support/erasure/traces.ts'
import { AT_REST, fillWorld, type Names, openToErase, type StoreToErase } from '../support/erasure/world-to-erase.ts'
import { ADMIN, ask, logIn, startTestRelay } from '../support/relay/relay.ts'
import { DAY_MS, NO_CARRIER } from '../support/runner/constants.ts'
import { casesOf } from '../support/runner/long-form.ts'
import { drawWith, seeded } from '../support/runner/seeded.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { copyPlace, engines, newPlace } from '../support/store/engines.ts'

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
async function relayOn(place: string) {
  const isFile = !place.startsWith('postgres://')
  const relay = await startTestRelay(isFile ? dirname(place) : temporaryFolder(), NO_CARRIER, {
    poll: { cron: '0 0 1 1 *' },
    secrets: { atRestKeys: [AT_REST.toString('base64')] },
    ...(isFile ? {} : { store: place }),
  })
  onTestFinished(() => relay.stop())
  const token = await logIn(relay.internalUrl, ADMIN)
  return { stop: relay.stop, asks: async (path: string) => await (await ask(relay.internalUrl, token, path)).text() }
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

    const search = searchForNames(gone.flat())
    expect((await tablesWith(search, place)).length).toBeGreaterThan(5)
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
})
