import { certainNeeds, firstNeeds } from '../../../src/core/domain/history/batch-needs.ts'
import type { ChangeSet, OverwrittenWrite, WriteSet } from '../../../src/core/domain/history/change-set.ts'
import { decide } from '../../../src/core/domain/history/decide.ts'
import type { Tombstone } from '../../../src/core/domain/history/erased.ts'
import type { IdentifierState, ParcelState } from '../../../src/core/domain/history/parcel-state.ts'
import { answerId, type KeptAnswer, keepAnswers, parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import { type Incoming, pushDigest, type RecordBatch, type RecordRules, recordBatch } from '../../../src/core/domain/history/recording.ts'
import { type KeptSighting, listedId, sightingId, sightingsOf } from '../../../src/core/domain/history/sightings.ts'
import {
  addLoaded,
  type BatchNeeds,
  type KeptBody,
  type Loaded,
  type Needs,
  type NextNumbers,
  onlyNeeds,
  pushKey,
  type Snapshot,
  type Subscriber,
  startSnapshot,
} from '../../../src/core/domain/history/snapshot.ts'
import type { CadenceModel } from '../../../src/core/domain/polling/cadence.ts'
import type { StoredPush } from '../../../src/upkeep/rebuild/evidence.rules.ts'
import type { StoredParcel } from '../../../src/upkeep/rebuild/rebuild-parcel.rules.ts'
import type { ParcelRecord } from '../history/parcel-record.ts'

interface HeldParcel {
  readonly state: ParcelState
  readonly sightings: ReadonlyMap<string, KeptSighting>
  readonly answers: readonly KeptAnswer[]
  readonly bodies: readonly KeptBody[]
}

/**
 * How much is loaded before `decide` asks for more. `whole`: everything about the parcels of a batch. `first`: the needs that `firstNeeds`
 * returns. `certain`: those of them that `certainNeeds` keeps. `asked`: only the states of the parcels.
 */
export type Loads = 'whole' | 'first' | 'certain' | 'asked'

interface Given {
  readonly rules: RecordRules
  readonly model: CadenceModel
  readonly endpoints: readonly Subscriber[]
  readonly loads: Loads
}

type Order = NonNullable<ParcelRecord['order']>

const ROUNDS_MAX = 12

/** Records without a database. */
export function createMemoryRecording({ rules, model, endpoints, loads }: Given) {
  const parcels = new Map<number, HeldParcel>()
  const identifiers = new Map<string, IdentifierState>()
  const pushes = new Map<string, { readonly inboxId: number; readonly parcelId: number; readonly digest: string }>()
  /** The bodies of answers, by answer id. */
  const answered = new Map<string, Uint8Array>()
  /** Caches the order by the parcel's list of answers. Such a list is never changed in place. */
  const orders = new WeakMap<readonly KeptAnswer[], Order | null>()
  const tombstones = new Map<string, Tombstone>()
  let overwritten: readonly OverwrittenWrite[] = []
  let next: NextNumbers = { parcelId: 1, sequence: 1, inboxId: 1 }

  function orderOf(answers: readonly KeptAnswer[]): Order | null {
    const known = orders.get(answers)
    if (known !== undefined) return known
    const order = readOrder(answers)
    orders.set(answers, order)
    return order
  }

  function readOrder(answers: readonly KeptAnswer[]): Order | null {
    const { order } = keepAnswers(answers)
    if (order === null) return null
    const { language, askedAtMs } = order
    const reading = parseAllAnswer(answered.get(answerId(order)) ?? new Uint8Array(), {
      asked: '1',
      language,
      contentLanguage: null,
      askedAtMs,
    })
    if (!reading.ok) throw new Error(`a kept answer cannot be read: ${reading.reason}`)
    return { answer: order, listed: sightingsOf(reading.observation).map(listedId) }
  }

  function found(parcelIds: readonly number[]): readonly (readonly [number, HeldParcel])[] {
    return parcelIds.map((parcelId) => {
      const held = parcels.get(parcelId)
      if (held === undefined) throw new Error(`there is no parcel ${parcelId}`)
      return [parcelId, held]
    })
  }

  function look(needs: Needs): Loaded {
    const sightingsOf = ([parcelId, { sightings }]: readonly [number, HeldParcel]) => [parcelId, [...sightings.values()]] as const
    const asked = new Set(needs.pushes.map(({ parcelId, digest }) => pushKey(parcelId, digest)))
    const held = [...pushes.values()].map(({ inboxId, parcelId, digest }) => [pushKey(parcelId, digest), inboxId] as const)
    return {
      needs,
      parcels: found(needs.parcels).map(([, { state }]) => state),
      pushes: new Map(held.filter(([key]) => asked.has(key))),
      seconds: new Map(found(needs.seconds.map(({ parcelId }) => parcelId)).map(sightingsOf)),
      whole: new Map(found(needs.whole).map(sightingsOf)),
      answers: new Map(found(needs.answers).map(([parcelId, { answers }]) => [parcelId, answers])),
      orders: new Map(found(needs.orders).map(([parcelId, { answers }]) => [parcelId, orderOf(answers)?.listed ?? []])),
      bodies: new Map(found(needs.bodies).map(([parcelId, { bodies }]) => [parcelId, bodies])),
      contexts: new Map(),
    }
  }

  function loadMore(snapshot: Snapshot, { joins, ...needs }: BatchNeeds): Snapshot {
    const whole = [...new Set([...needs.whole, ...joins.flat()])]
    const loaded = look({ ...needs, whole, answers: [...new Set([...needs.answers, ...joins.flat()])] })
    return { ...addLoaded(snapshot, loaded), model }
  }

  function load(batch: RecordBatch): Snapshot {
    const first = firstNeeds(batch, { identifiers, tombstones, endpoints })
    const { parcels: named, pushes: twins } = first
    const start = { ...startSnapshot({ next, identifiers, endpoints, tombstones }), model }
    if (loads === 'first') return loadMore(start, first)
    if (loads === 'asked') return loadMore(start, { ...onlyNeeds({ parcels: named, pushes: twins }), joins: [] })
    if (loads === 'certain') {
      const seen = look(onlyNeeds({ parcels: named, pushes: twins }))
      return loadMore(start, { ...certainNeeds(first, seen.parcels, seen.pushes), joins: first.joins })
    }
    const all = { whole: named, answers: named, orders: named, bodies: named }
    return loadMore(start, { ...onlyNeeds({ parcels: named, pushes: twins, ...all }), joins: [] })
  }

  function decideWhole(batch: RecordBatch): ChangeSet {
    let snapshot = load(batch)
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const decided = decide(snapshot, batch, rules)
      if (!('needs' in decided)) return decided
      snapshot = loadMore(snapshot, decided.needs)
    }
    throw new Error(`\`decide\` asked for more ${ROUNDS_MAX} times`)
  }

  function applyJoin({ join }: WriteSet): void {
    if (join === null) return
    const all = [join.survivor, ...join.others].map(({ state }) => parcels.get(state.parcelId))
    const held = all.filter((one) => one !== undefined)
    const { parcelId } = join.parcel
    const sightings = new Map(held.flatMap((one) => [...one.sightings]))
    for (const kept of join.shared) sightings.set(sightingId(kept), kept)
    const { kept: answers } = keepAnswers(held.flatMap((one) => one.answers))
    const gone = new Set(join.others.map(({ state }) => state.parcelId))
    for (const one of gone) parcels.delete(one)
    overwritten = overwritten.filter((one) => !gone.has(one.parcelId))
    for (const [value, identifier] of identifiers) if (gone.has(identifier.parcelId)) identifiers.set(value, { ...identifier, parcelId })
    for (const [key, push] of pushes) if (gone.has(push.parcelId)) pushes.set(key, { ...push, parcelId })
    parcels.set(parcelId, { state: join.parcel, sightings, answers, bodies: held.flatMap((one) => one.bodies) })
  }

  function change(parcelId: number, changed: (held: HeldParcel) => Partial<HeldParcel>): void {
    const held = parcels.get(parcelId)
    if (held === undefined) throw new Error(`an unknown parcel is written: ${parcelId}`)
    parcels.set(parcelId, { ...held, ...changed(held) })
  }

  function apply(set: WriteSet): void {
    applyJoin(set)
    for (const [parcelId, state] of set.parcels) {
      parcels.set(parcelId, { sightings: new Map(), answers: [], bodies: [], ...parcels.get(parcelId), state })
    }
    for (const identifier of set.identifiers) identifiers.set(identifier.value, identifier)
    for (const { inboxId, digest, parcelId, state, push } of set.inbox) {
      pushes.set(String(inboxId), { inboxId, digest, parcelId })
      if (state === 'recorded') change(parcelId, ({ bodies }) => ({ bodies: [...bodies, { inboxId, body: push.body }] }))
    }
    for (const { parcelId, kept } of set.sightings) {
      change(parcelId, ({ sightings }) => ({ sightings: new Map(sightings).set(sightingId(kept), kept) }))
    }
    overwritten = [...overwritten, ...set.overwritten]
    for (const { parcelId, answer, body, dropped } of set.answers) {
      answered.set(answerId(answer), body ?? new Uint8Array())
      const gone = new Set(dropped.map(answerId))
      change(parcelId, ({ answers }) => ({
        answers: keepAnswers([...answers.filter((one) => !gone.has(answerId(one))), answer]).kept,
      }))
    }
  }

  return {
    record(observations: readonly Incoming[], nowMs: number): ChangeSet {
      const decided = decideWhole(recordBatch(observations, nowMs))
      for (const set of decided.writes) apply(set)
      for (const { value, ...tombstone } of decided.erased) tombstones.set(value, tombstone)
      next = decided.next
      return decided
    },
    stored: (): readonly { readonly parcel: StoredParcel; readonly pushes: readonly StoredPush[] }[] =>
      [...parcels].map(([parcelId, { state, sightings, answers, bodies }]) => {
        const order = orderOf(answers)?.answer
        return {
          parcel: {
            state,
            identifiers: [...identifiers.values()].filter((identifier) => identifier.parcelId === parcelId),
            sightings: [...sightings.values()],
            answers: answers.map((answer) => ({
              answer,
              decidesOrder: answer === order,
              body: answered.get(answerId(answer)) ?? null,
              listed: null,
            })),
          },
          pushes: bodies.map(({ body }) => ({ parcelId, digest: pushDigest(body), contentEncoding: null, receivedAtMs: 0, body })),
        }
      }),
    overwritten: (parcelId: number): readonly OverwrittenWrite[] => overwritten.filter((one) => one.parcelId === parcelId),
    erase(identifier: string, nowMs: number): void {
      const parcelId = identifiers.get(identifier)?.parcelId
      if (parcelId === undefined) return
      parcels.delete(parcelId)
      for (const [key, push] of pushes) if (push.parcelId === parcelId) pushes.delete(key)
      for (const [value, known] of identifiers) {
        if (known.parcelId !== parcelId) continue
        identifiers.delete(value)
        tombstones.set(value, { parcelId, erasedAtMs: nowMs })
      }
    },
    /** The recorded parcels, as the model of the merge takes them. */
    parcels: (): readonly ParcelRecord[] =>
      [...parcels].map(([parcelId, { sightings, answers }]) => {
        const mine = [...identifiers.values()].filter((identifier) => identifier.parcelId === parcelId)
        return {
          sightings: [...sightings.values()],
          answers,
          order: orderOf(answers),
          trackingIds: mine.filter(({ isTrackingId }) => isTrackingId).map(({ value }) => value),
          identifiers: mine.map(({ value }) => value),
        }
      }),
  }
}
