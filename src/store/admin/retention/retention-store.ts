import type { ClockRecord } from '../../../domain/admin/clock-record.ts'
import type { AgedDelivery, AgedPush, AgeMark, ParcelAge, RetentionState, UnrecordedPush } from '../../../domain/admin/retention.ts'
import type { TimeCursor } from '../../../domain/delivery/operator-event.ts'
import type { ParcelState } from '../../../domain/history/parcel-state.ts'

/** A page of rows older than `beforeMs`, the oldest first. `after`: the last row of the previous page. */
export interface AgePage {
  readonly beforeMs: number
  readonly after: TimeCursor | null
  readonly limit: number
}

/** A page of rows with numbers above `after`, up to and including `upTo`. */
export interface NumberPage {
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

export interface EndedDelivery {
  readonly deliveryId: number
  readonly settledAtMs: number
  readonly attempts: number
}

/** An answer of the carrier whose bytes are still stored. */
export interface AgedAnswer {
  readonly parcelId: number
  readonly language: string
  readonly digest: Uint8Array
  readonly askedAtMs: number
  readonly bodyBytes: number
  /** Whether it decides the order of its parcel's entries. */
  readonly decidesOrder: boolean
}

/** A text that no sighting used when it was marked. `isUsed`: a sighting uses the text again. */
export interface UnusedText {
  readonly id: number
  readonly json: string
  readonly isUsed: boolean
}

/** The reads of a retention pass, in its transaction, and of a preview, without a transaction. */
export interface AgedReads {
  /** Deliveries in the order in which they were queued. */
  agedDeliveries(page: AgePage): Promise<readonly AgedDelivery[]>
  /** Deliveries that have ended, in the order in which they ended. */
  endedDeliveries(page: AgePage): Promise<readonly EndedDelivery[]>
  /** Pushes whose bytes are still stored. */
  agedPushes(page: AgePage): Promise<readonly AgedPush[]>
  /** Pushes without a parcel. */
  unrecordedPushes(page: AgePage): Promise<readonly UnrecordedPush[]>
  /** Polled answers whose bytes are still stored, in the order in which they were asked for. */
  agedAnswers(page: { readonly beforeMs: number; readonly limit: number }): Promise<readonly AgedAnswer[]>
  parcelAges(page: NumberPage): Promise<readonly ParcelAge[]>
  /** The highest id of a parcel, a push and a delivery. */
  newest(): Promise<{ readonly parcelId: number; readonly inboxId: number; readonly deliveryId: number }>
  /** Null: no pass has looked at the clock yet. */
  clockRecord(): Promise<ClockRecord | null>
  /** Which of these pushes are sent by a dead or cancelled delivery, which an operator may replay. */
  replayablePushes(inboxIds: readonly number[]): Promise<ReadonlySet<number>>
  /** The ids of endpoints with waiting deliveries. */
  endpointsWithBacklog(): Promise<readonly number[]>
  /** Which of these parcels have a waiting delivery for one of these endpoints. */
  awaitedParcels(endpointIds: readonly number[], parcelIds: readonly number[]): Promise<ReadonlySet<number>>
  /** Which of these parcels have a stored delivery, waiting or ended. */
  deliveredParcels(parcelIds: readonly number[]): Promise<ReadonlySet<number>>
  agedFeed(page: NumberPage): Promise<readonly number[]>
  /** Composed events by sequence. `isNamed`: a delivery still refers to it. */
  composedEvents(page: NumberPage): Promise<readonly { readonly sequence: number; readonly isNamed: boolean }[]>
  /** All marks, the oldest first. A mark notes the highest sequence and parcel id that were in use at a time. */
  ageMarks(): Promise<readonly AgeMark[]>
  /** The last deleted sequence of the feed; 0: none was deleted. */
  feedPrunedTo(): Promise<number>
}

/** The store as a retention pass uses it inside one transaction; see `WriteTx`. */
export interface RetentionTx extends AgedReads {
  /** Reads the stored state of retention, and locks it until the transaction ends. */
  loadRetention(): Promise<RetentionState>
  saveRetention(state: RetentionState): Promise<void>
  /** Saves a mark. It replaces a mark with the same time. */
  keepMark(mark: AgeMark): void
  /** Deletes the marks from before `beforeMs` and those from after `afterMs`. */
  dropMarks(outside: { readonly beforeMs: number; readonly afterMs: number }): void
  /** Cancels deliveries that have not ended. The next deliveries of their parcels may then be sent. */
  cancelDeliveries(deliveries: readonly AgedDelivery[], nowMs: number): void
  /** Deletes deliveries with their attempts, unless they have been queued again. */
  removeDeliveries(deliveryIds: readonly number[]): Promise<void>
  /** Deletes the bytes of the pushes in `cleared`. Dismisses the pushes in `closed` if they are in quarantine. */
  clearPushes(pushes: { readonly cleared: readonly number[]; readonly closed: readonly number[] }): void
  /** Deletes the bytes of answers, unless the carrier has given the same answer again since. Keeps the order that an answer decides. */
  clearAnswers(answers: readonly AgedAnswer[]): Promise<void>
  /** Locks parcels until the transaction ends, and returns the ones that still exist. */
  holdParcels(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  /**
   * Deletes parcels with everything that belongs to them, and adds a `retired` event to the feed for each. The parcels must be locked by
   * `holdParcels` and have no deliveries. If they have more than `limit` pushes, deletes only `limit` pushes, and `isDone` is false.
   */
  retireParcels(parcelIds: readonly number[], limit: number): Promise<{ readonly isDone: boolean }>
  /** In the order of ids. */
  unusedTexts(page: Omit<NumberPage, 'upTo'>): Promise<readonly UnusedText[]>
  /** Deletes the texts in `unused`, and the marks of the texts in `used`. */
  removeTexts(texts: { readonly unused: readonly UnusedText[]; readonly used: readonly UnusedText[] }): void
  /** Deletes pushes without a parcel. */
  removePushes(inboxIds: readonly number[]): void
  /** Deletes the events of the feed up to and including a sequence. */
  pruneFeed(upTo: number): Promise<void>
  removeComposed(sequences: readonly number[]): void
}
