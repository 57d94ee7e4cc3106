import type { AgedDelivery, AgedPush, AgeMark, ParcelAge, RetentionState, UnrecordedPush } from '../../../domain/admin/retention.ts'
import type { TimeCursor } from '../../../domain/delivery/operator-event.ts'
import type { ParcelState } from '../../../domain/history/parcel-state.ts'

/** Selects a page of the rows that are older than `beforeMs`, the oldest first. `after`: the last row of the previous page. */
export interface AgePage {
  readonly beforeMs: number
  readonly after: TimeCursor | null
  readonly limit: number
}

/** Selects the rows whose number is above `after` and at most `upTo`. */
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
}

/** A text of sightings that was marked because no sighting used it any more. `isUsed`: a sighting uses it again. */
export interface UnusedText {
  readonly id: number
  readonly json: string
  readonly isUsed: boolean
}

/** The reads of a retention pass, inside its transaction. A preview of a pass uses them without a transaction. */
export interface AgedReads {
  /** Deliveries in the order in which they were queued. */
  agedDeliveries(page: AgePage): Promise<readonly AgedDelivery[]>
  /** Deliveries that have ended, in the order in which they ended, except the newest delivery. */
  endedDeliveries(page: AgePage): Promise<readonly EndedDelivery[]>
  /** Pushes whose bytes are still stored. */
  agedPushes(page: AgePage): Promise<readonly AgedPush[]>
  /** Pushes without a parcel, except the newest push. */
  unrecordedPushes(page: AgePage): Promise<readonly UnrecordedPush[]>
  /** Polled answers whose bytes are still stored, in the order in which they were asked for. */
  agedAnswers(page: { readonly beforeMs: number; readonly limit: number }): Promise<readonly AgedAnswer[]>
  parcelAges(page: NumberPage): Promise<readonly ParcelAge[]>
  /** The parcel of the newest push (0: the push has no parcel), and the highest parcel id. */
  newest(): Promise<{ readonly ownerOfPush: number; readonly parcelId: number }>
  /** The ids of endpoints with waiting deliveries. */
  endpointsWithBacklog(): Promise<readonly number[]>
  /** Which of these parcels have a waiting delivery for one of these endpoints. */
  awaitedParcels(endpointIds: readonly number[], parcelIds: readonly number[]): Promise<ReadonlySet<number>>
  /** Which of these parcels still have a delivery, whether or not it has ended. */
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
  /** Cancels deliveries that have not ended. Then the next deliveries of their parcels may be sent. */
  cancelDeliveries(deliveries: readonly AgedDelivery[], nowMs: number): void
  /** Deletes deliveries with their attempts, unless they have been queued again. */
  removeDeliveries(deliveryIds: readonly number[]): Promise<void>
  /** Deletes the bytes of the pushes in `cleared`. Dismisses the pushes in `closed` if they are in quarantine. */
  clearPushes(pushes: { readonly cleared: readonly number[]; readonly closed: readonly number[] }): void
  /** Deletes the bytes of answers, unless the carrier has given the same answer again since. */
  clearAnswers(answers: readonly AgedAnswer[]): void
  /** Locks parcels until the transaction ends, and returns the ones that still exist. */
  holdParcels(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  /**
   * Deletes parcels that `holdParcels` has locked and that have no deliveries, with everything that belongs to them. Adds a `retired` event
   * to the feed for each parcel. If the parcels have more than `limit` pushes, deletes only `limit` pushes, and `isDone` is false.
   */
  retireParcels(parcelIds: readonly number[], limit: number): Promise<{ readonly isDone: boolean }>
  /** Texts that are marked as unused, in the order of their ids. Retiring or correcting a parcel marks the texts that nothing uses any more. */
  unusedTexts(page: Omit<NumberPage, 'upTo'>): Promise<readonly UnusedText[]>
  /** Deletes the texts in `unused`, and removes the mark of the texts in `used`. */
  removeTexts(texts: { readonly unused: readonly UnusedText[]; readonly used: readonly UnusedText[] }): void
  /** Deletes pushes without a parcel. */
  removePushes(inboxIds: readonly number[]): void
  /** Deletes the events of the feed up to and including a sequence. */
  pruneFeed(upTo: number): Promise<void>
  removeComposed(sequences: readonly number[]): void
}
