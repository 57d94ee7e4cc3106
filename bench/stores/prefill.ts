import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWriteSide } from '../../src/assembly/open-write-side.ts'
import { defaultSettings, type EndpointSettings } from '../../src/core/domain/delivery/endpoint-state.ts'
import { parsePush } from '../../src/core/domain/ingest/parse-push.ts'
import { systemClock } from '../../src/core/runtime/system-clock.ts'
import type { Engine } from '../../src/core/store/contract.ts'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { EVENTS_PER_PARCEL, eventAt, eventBody } from '../load/event.ts'
import { contentsOf } from './contents.ts'

const BATCH = 2000
const DAY_MS = 86_400_000
/** No parcel is ever due, or a starting relay would poll at once. */
export const POLICY = {
  record: {
    cadence: { byStatusMs: {}, defaultMs: 365 * DAY_MS, whenPushIsHealthy: 1, tailMs: [], staleAfterMs: 3650 * DAY_MS },
    missedPushGraceMs: 600_000,
    historyRetentionMs: 400 * DAY_MS,
    identifierReuseAfterMs: null,
  },
  deliver: { policy: { scheduleMs: [5000], jitter: 0 }, perEndpoint: 8, claimsPerAttempt: 3, failingAfterMs: 900_000 },
}
/** The files whose contents decide what a store looks like. */
const RECIPE = ['src/core/{domain,flow,store}/**/*.ts', 'src/assembly/open-write-side.ts', 'bench/load/event.ts', 'bench/stores/*.ts']

/**
 * Copies to `path` a store with the events of this many parcels, written through the relay's write side once per version. Each of the named
 * `endpoints` has a waiting delivery of every event.
 */
export async function copyPrefilledStore(
  parcels: number,
  path: string,
  say: (text: string) => void,
  endpoints: readonly string[] = [],
): Promise<void> {
  copyFileSync(await prefilledStore(parcels, endpoints, say), path)
}

async function prefilledStore(parcels: number, endpoints: readonly string[], say: (text: string) => void): Promise<string> {
  return await makeOncePerVersion(`${parcels}-${endpoints.length}`, async (place) => {
    await fillStore({ place, engine: sqlite, parcels, endpoints, say })
    assertFilled(place, parcels)
  })
}

/** Makes a store once per version of the code, and returns the path under which it stays; `make` writes it to a place. */
export async function makeOncePerVersion(name: string, make: (place: string) => Promise<void>): Promise<string> {
  const folder = join(tmpdir(), 'parcel-relay-bench-stores')
  mkdirSync(folder, { recursive: true })
  const version = versionOfCode()
  // Stores of older versions are useless and large.
  for (const other of readdirSync(folder)) if (!other.startsWith(version)) rmSync(join(folder, other), { recursive: true, force: true })
  const path = join(folder, `${version}-${name}.db`)
  if (!existsSync(path)) await makeAt(path, make)
  return path
}

/** Makes a store beside a path and renames it there once it is complete, without the files that the relay keeps beside a store. */
export async function makeAt(path: string, make: (place: string) => Promise<void>): Promise<void> {
  const making = mkdtempSync(`${path}-making-`)
  try {
    const place = join(making, 'relay.db')
    await make(place)
    renameSync(place, path)
  } finally {
    rmSync(making, { recursive: true })
  }
}

/** Throws unless a store holds the events of this many parcels. */
export function assertFilled(place: string, parcels: number): void {
  const { pushes, entries } = contentsOf(place)
  const events = parcels * EVENTS_PER_PARCEL
  if (pushes !== events || entries !== events) throw new Error(`the filled store holds ${pushes} pushes and ${entries} entries`)
}

export interface Filling {
  /** A path or a URL, whichever the engine takes. */
  readonly place: string
  readonly engine: Engine
  readonly parcels: number
  /** Each has a waiting delivery of every event. */
  readonly endpoints: readonly string[]
  /** When all events are received, epoch milliseconds; absent: now. */
  readonly atMs?: number
  say(text: string): void
}

/** Fills a new store with the events of some parcels, through the relay's write side. */
export async function fillStore({ place, engine, parcels, endpoints, atMs, say }: Filling): Promise<void> {
  const events = parcels * EVENTS_PER_PARCEL
  say(`filling a store (${engine.name}) with ${events} events ...`)
  const startMs = performance.now()
  const nowMs = atMs ?? Date.now()
  const clock = { ...systemClock, now: () => (atMs === undefined ? Date.now() : nowMs) }
  const write = await openWriteSide({ sqlitePath: place, engine, ...POLICY }, clock, { error: (fields) => console.error(fields) })
  if (endpoints.length > 0) await write.syncEndpoints(endpoints.map(endpointNamed), nowMs, null)
  for (let from = 0; from < events; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, events - from) }, (_, at) => {
      const { parcel, nth } = eventAt(from + at, 0)
      return parsePush({ body: eventBody(parcel, nth, nowMs), contentEncoding: null, receivedAtMs: nowMs, keyIndex: 0 })
    })
    await write.record(batch)
  }
  await write.close()
  say(`filled in ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
}

/** A placeholder: the config of the started relay sets the URL. */
export function endpointNamed(name: string): EndpointSettings {
  return { ...defaultSettings, name, url: 'http://127.0.0.1:9/' }
}

function versionOfCode(): string {
  const hash = createHash('sha256')
  for (const file of globSync(RECIPE).toSorted()) hash.update(file).update(readFileSync(file))
  return hash.digest('hex').slice(0, 12)
}
