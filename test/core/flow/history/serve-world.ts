import type { Entry } from '../../../../src/core/domain/history/history.ts'
import type { ParcelView } from '../../../../src/core/domain/history/parcel-state.ts'
import type { IncomingPoll } from '../../../../src/core/domain/history/recording.ts'
import type { Rest } from '../../../../src/core/domain/instant.ts'
import type { CallPriority, CarrierAnswer } from '../../../../src/core/domain/polling/carrier-answer.ts'
import type { QuestionKind } from '../../../../src/core/flow/history/answer.ts'
import type { Pause } from '../../../../src/core/flow/history/fetch-on-miss.ts'
import { createServe, type ServeOptions } from '../../../../src/core/flow/history/serve.ts'
import type { Log } from '../../../../src/core/flow/ports.ts'
import { createAnswerCache, createChangeTable, tellChanged } from '../../../../src/core/runtime/answer-cache.ts'
import { aPoll } from '../../../support/history/builders.ts'

export const NUMBER = 'AB123456789SE'
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export function anEntry(languages: readonly string[], fields: Partial<Entry> = {}): Entry {
  return {
    status: 'Ingested',
    detailedStatus: 'Ingested',
    eventTimestamp: '2026-03-01T10:00:00Z',
    atMs: Date.UTC(2026, 2, 1, 10),
    location: 'Lund',
    displayToConsumer: true,
    texts: Object.fromEntries(
      languages.map((language) => [language, { consumer: `consumer ${language}`, detailed: `detailed ${language}` }]),
    ),
    extra: [],
    founding: 0,
    members: [],
    sequence: 1,
    ...fields,
  }
}

export function aView(fields: Partial<ParcelView> = {}): ParcelView {
  return {
    parcelId: 7,
    version: 0,
    entries: [anEntry(['en', 'sv'])],
    trackingIds: ['1001'],
    distributionType: 'Mailbox',
    extra: [],
    lastSeenAtMs: 1_000_000,
    watched: true,
    unknownToCarrier: false,
    languagesAsked: [],
    ...fields,
  }
}

/** The carrier's answer, with one entry. */
export function found(language: string, answered = language): CarrierAnswer {
  return { kind: 'found', observation: aPoll({ asked: NUMBER, language: answered, text: `text ${language}` }) }
}

/** Opens `serve` on a made-up store, carrier and clock. `isShared`: as if other replicas wrote too, so the store gives versions of parcels. */
export function createWorld({ isShared = false, ...options }: Partial<ServeOptions> & { readonly isShared?: boolean } = {}) {
  const parcels = new Map<string, ParcelView>()
  const calls: { readonly identifier: string; readonly language: string; readonly priority: CallPriority }[] = []
  const notes: string[] = []
  const served: string[] = []
  const unknowns: string[] = []
  const world = {
    nowMs: 2_000_000,
    /** How far the wall clock was put back. */
    putBackMs: 0,
    reads: 0,
    /** How often the version of a parcel was read. */
    looks: 0,
    carrier: async (language: string): Promise<CarrierAnswer> => found(language),
    admit: async (_app: string): Promise<number | null> => null,
    beforeRead: async () => {},
    beforeWrite: () => {},
    noted: () => {},
    parcels,
    calls,
    notes,
    served,
    unknowns,
  }

  const parcelVersion = async (parcelId: number) => {
    world.looks += 1
    await world.beforeRead()
    return [...parcels.values()].find((view) => view.parcelId === parcelId)?.version ?? null
  }

  /** Adds the texts of the poll's nth entry to those of the nth entry before. */
  const submit = async ({ observation, watch }: IncomingPoll) => {
    world.beforeWrite()
    const before = parcels.get(observation.asked)
    const entries = observation.sightings.map((sighting, index) => ({
      ...anEntry([]),
      status: sighting.status,
      texts: { ...before?.entries[index]?.texts, ...sighting.texts },
    }))
    parcels.set(observation.asked, aView({ ...before, entries, lastSeenAtMs: world.nowMs, watched: watch || before?.watched === true }))
    changed([7])
    return { kind: 'recorded', parcelId: 7, changed: true, newEntries: 1, queued: 0 } as const
  }

  const changes = createChangeTable()
  const cache = createAnswerCache({ bytesMax: 1_000_000, changes })
  /** Tells the cache of changed parcels, as the writer does after a commit. */
  const changed = (parcelIds: readonly number[]) => tellChanged(changes, parcelIds)
  const serve = createServe(
    {
      carrier: {
        fetchAll: ({ identifier, language, priority }) => {
          calls.push({ identifier, language, priority })
          return world.carrier(language)
        },
      },
      recorder: { submit },
      reads: {
        findParcel: async (identifier) => {
          world.reads += 1
          const view = parcels.get(identifier) ?? null
          await world.beforeRead()
          return view
        },
        ...(isShared ? { parcelVersion } : {}),
      },
      write: {
        watch: async ({ identifier }) => {
          world.beforeWrite()
          notes.push(`watch ${identifier}`)
          parcels.set(identifier, aView({ ...parcels.get(identifier), watched: true }))
          changed([7])
          return { parcelId: 7, created: false }
        },
        noteLanguageAsked: async ({ parcelId, language }) => {
          notes.push(`asked ${parcelId} ${language}`)
          const view = parcels.get(NUMBER)
          if (view !== undefined) parcels.set(NUMBER, { ...view, languagesAsked: [...view.languagesAsked, language] })
          world.noted()
        },
        noteNotPollable: async (identifier) => void notes.push(`not pollable ${identifier}`),
      },
      cache,
      notFound: new Map<string, number>(),
      pauses: new Map<string, Pause>(),
      rests: new Map<string, Rest>(),
      erasedAtMs: async () => null,
      admitUnknown: (app) => {
        unknowns.push(app)
        return world.admit(app)
      },
      meter: { served: (result) => void served.push(result) },
      log: silent,
      clock: { now: () => world.nowMs, monotonic: () => world.nowMs + world.putBackMs },
    },
    {
      languages: ['en', 'sv'],
      notFoundForMs: 300_000,
      fetchUnknown: true,
      fetchMissingLanguage: true,
      refreshOlderThanMs: null,
      ...options,
    },
  )

  const ask = (question: { identifier?: string; language?: unknown; kind?: QuestionKind; app?: string } = {}) =>
    serve.ask({ app: 'shop', identifier: NUMBER, language: undefined, kind: 'all', ...question })
  return Object.assign(world, { serve, cache, changed, ask })
}
