import type { ChangeSet, WriteSet } from '../../src/domain/history/change-set.ts'
import { decide } from '../../src/domain/history/decide.ts'
import { identifiersOf } from '../../src/domain/history/observation.ts'
import { answerId, type KeptAnswer, keepAnswers, type ParcelRecord } from '../../src/domain/history/parcel-record.ts'
import type { IdentifierState, ParcelState } from '../../src/domain/history/parcel-state.ts'
import { parseAllAnswer } from '../../src/domain/history/pull-response.ts'
import { type RecordBatch, recordBatch } from '../../src/domain/history/record-batch.ts'
import type { RecordRules } from '../../src/domain/history/record-rules.ts'
import type { Incoming } from '../../src/domain/history/recording.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../../src/domain/history/sightings.ts'
import type { KeptBody, KnownParcel, Needs, NextNumbers, Snapshot, Subscriber } from '../../src/domain/history/snapshot.ts'
import { pushKey } from '../../src/domain/history/snapshot.ts'
import type { CadenceModel } from '../../src/domain/polling/cadence.ts'

interface HeldParcel {
  readonly state: ParcelState
  readonly sightings: ReadonlyMap<string, KeptSighting>
  readonly answers: readonly KeptAnswer[]
  readonly bodies: readonly KeptBody[]
}

interface Given {
  readonly rules: RecordRules
  readonly model: CadenceModel
  readonly endpoints: readonly Subscriber[]
  /** `whole`: loads every parcel of a batch at once; `asked`: loads nothing until `decide` asks for it. */
  readonly loads: 'whole' | 'asked'
}

/** The answer that decides the order at equal instants, and the sightings it lists. */
type Order = NonNullable<ParcelRecord['order']>

/** How often `decide` may ask for more before the test fails. */
const ROUNDS_MAX = 12

/** Records without a database, in maps. */
export function createMemoryRecording({ rules, model, endpoints, loads }: Given) {
  const parcels = new Map<number, HeldParcel>()
  const identifiers = new Map<string, IdentifierState>()
  const pushes = new Map<string, { readonly inboxId: number; readonly parcelId: number; readonly digest: string }>()
  /** Bodies of answers, by answer id. */
  const answered = new Map<string, Uint8Array>()
  /** Cached by a parcel's list of answers, which is never changed in place. */
  const orders = new WeakMap<readonly KeptAnswer[], Order | null>()
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
    if (!reading.ok) throw new Error(`an answer that was kept is none: ${reading.reason}`)
    return { answer: order, sightingIds: sightingsOf(reading.observation).map(sightingId) }
  }

  function known({ state, sightings, answers, bodies }: HeldParcel): KnownParcel {
    if (loads === 'asked') return { state, seconds: new Map(), whole: false, answers: null, order: null, pollable: null, bodies: null }
    const order = orderOf(answers)?.sightingIds ?? []
    return { state, seconds: bySecond(sightings), whole: true, answers, order, pollable: true, bodies }
  }

  function load({ observations }: RecordBatch): Snapshot {
    const named = new Set(observations.flatMap(namesOf).map((value) => identifiers.get(value)?.parcelId))
    return {
      next,
      identifiers,
      parcels: new Map([...parcels].filter(([parcelId]) => named.has(parcelId)).map(([parcelId, held]) => [parcelId, known(held)])),
      pushes: new Map([...pushes.values()].map(({ inboxId, parcelId, digest }) => [pushKey(parcelId, digest), inboxId])),
      unrecorded: new Set([...pushes.values()].map(({ digest }) => digest)),
      overfull: new Set(),
      endpoints,
      model,
    }
  }

  function loadMore(snapshot: Snapshot, needs: Needs): Snapshot {
    const loaded = new Map(snapshot.parcels)
    const add = (parcelId: number, pick: (held: HeldParcel) => Partial<KnownParcel>) => {
      const [before, held] = [loaded.get(parcelId), parcels.get(parcelId)]
      if (before === undefined || held === undefined) throw new Error(`parcel ${parcelId} is asked for, and there is none`)
      loaded.set(parcelId, { ...before, ...pick(held) })
    }
    const whole = ({ sightings }: HeldParcel) => ({ seconds: bySecond(sightings), whole: true })
    for (const [parcelId, second] of needs.seconds) {
      add(parcelId, ({ sightings }) => ({
        seconds: new Map(loaded.get(parcelId)?.seconds).set(second, bySecond(sightings).get(second) ?? []),
      }))
    }
    for (const parcelId of [...needs.whole, ...needs.joins.flat()]) add(parcelId, whole)
    for (const parcelId of [...needs.answers, ...needs.joins.flat()]) add(parcelId, ({ answers }) => ({ answers }))
    for (const parcelId of needs.orders) add(parcelId, ({ answers }) => ({ order: orderOf(answers)?.sightingIds ?? [] }))
    for (const parcelId of needs.pollable) add(parcelId, () => ({ pollable: true }))
    for (const parcelId of needs.bodies) add(parcelId, ({ bodies }) => ({ bodies }))
    return { ...snapshot, parcels: loaded, unrecorded: new Set([...snapshot.unrecorded, ...needs.unrecorded]) }
  }

  function decideWhole(batch: RecordBatch): ChangeSet {
    let snapshot = load(batch)
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const decided = decide(snapshot, batch, rules)
      if (!('needs' in decided)) return decided
      snapshot = loadMore(snapshot, decided.needs)
    }
    throw new Error('deciding asks for more again and again')
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
    for (const [value, identifier] of identifiers) if (gone.has(identifier.parcelId)) identifiers.set(value, { ...identifier, parcelId })
    for (const [key, push] of pushes) if (gone.has(push.parcelId)) pushes.set(key, { ...push, parcelId })
    parcels.set(parcelId, { state: join.parcel, sightings, answers, bodies: held.flatMap((one) => one.bodies) })
  }

  function change(parcelId: number, changed: (held: HeldParcel) => Partial<HeldParcel>): void {
    const held = parcels.get(parcelId)
    if (held === undefined) throw new Error(`a parcel is written that there is not: ${parcelId}`)
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
    for (const { parcelId, answer, body, dropped } of set.answers) {
      answered.set(answerId(answer), body)
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
      next = decided.next
      return decided
    },
    /** The recorded parcels, in the form of the merge model. */
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

function namesOf(incoming: Incoming): readonly string[] {
  if (incoming.kind === 'poll') return identifiersOf(incoming.observation)
  return incoming.reading.ok ? identifiersOf(incoming.reading.observation) : []
}

function bySecond(sightings: ReadonlyMap<string, KeptSighting>): Map<number, KeptSighting[]> {
  return Map.groupBy(sightings.values(), ({ sighting }) => Math.floor(sighting.instant.atMs / 1000))
}
