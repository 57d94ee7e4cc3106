import type { ClaimedDelivery, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import type { WriteSide } from '../../../src/core/flow/write-side.ts'

function accepted({ body: _body, previousSequence: _previous, ...delivery }: ClaimedDelivery, nowMs: number): SettledAttempt {
  return { ...delivery, result: { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() }, atMs: nowMs, random: 0.5 }
}

/** Creates a dispatcher that claims and settles deliveries of all endpoints while the test records and replays. Every attempt is accepted. */
export function createCourier(writes: Pick<WriteSide, 'dispatchRound'>, nowMs: number) {
  let underWay: readonly ClaimedDelivery[] = []
  const wrong: string[] = []
  let last: Promise<unknown> = Promise.resolve()

  /** Ends the attempts that `ends` selects, by default all, and claims the deliveries that may go next. Rounds run one after the other. */
  function round(ends: (nth: number) => boolean = () => true): Promise<readonly ClaimedDelivery[]> {
    const begun = last.then(() => nextRound(ends))
    last = begun.catch(() => undefined)
    return begun
  }

  async function nextRound(ends: (nth: number) => boolean): Promise<readonly ClaimedDelivery[]> {
    const ended = underWay.filter((_, nth) => ends(nth))
    const goOn = underWay.filter((delivery) => !ended.includes(delivery))
    const inFlight = Object.fromEntries(
      [...Map.groupBy(goOn, ({ endpointId }) => endpointId)].map(([id, of]) => [id, of.map(({ deliveryId }) => deliveryId)]),
    )
    const settled = ended.map((delivery) => accepted(delivery, nowMs))
    const { claimed, overtaken } = await writes.dispatchRound({ settled, inFlight, allowance: {}, claimsMax: 100, nowMs })
    const pairs = [...goOn, ...claimed].map(({ endpointId, parcelId }) => `parcel ${parcelId} at endpoint ${endpointId}`)
    for (const [nth, pair] of pairs.entries()) if (pairs.indexOf(pair) !== nth) wrong.push(`two deliveries of ${pair} are under way`)
    const held = new Set(goOn.map(({ deliveryId }) => deliveryId))
    for (const { deliveryId } of claimed) if (held.has(deliveryId)) wrong.push(`${deliveryId} is under way twice`)
    const given = new Set(overtaken.map(({ deliveryId }) => deliveryId))
    underWay = [...goOn.filter(({ deliveryId }) => !given.has(deliveryId)), ...claimed]
    return claimed
  }

  return {
    wrong,
    round,
    /** Repeats rounds until nothing is left to claim. Checks the order of each parcel's deliveries. The test must not record or replay meanwhile. */
    async drain(): Promise<void> {
      const latest = new Map<string, number>()
      for (let claimed = await round(); claimed.length > 0; claimed = await round()) {
        for (const { endpointId, parcelId, sequence } of claimed) {
          const pair = `parcel ${parcelId} at endpoint ${endpointId}`
          if (sequence <= (latest.get(pair) ?? 0)) wrong.push(`${sequence} of ${pair} comes after ${latest.get(pair)}`)
          latest.set(pair, sequence)
        }
      }
    },
  }
}
