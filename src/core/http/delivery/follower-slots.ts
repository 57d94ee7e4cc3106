import { EdgeError } from '../server/errors.ts'

/** The slot of a stream of the feed, or of a request that waits for events. Slots are limited, because each costs memory and writes. */
export interface Slot {
  /** Aborted when the slot goes to another app. */
  readonly revoked: AbortSignal
  release(): void
}

export interface FollowerSlots {
  /** Throws `overloaded` if all slots are taken and this app can get none from another app. */
  take(app: string): Slot
}

/**
 * Gives out the slots of `limits.feedFollowers`. One app may hold all of them while no other app asks. When all are taken, an app with less
 * than a quarter of them can still get one. It takes the oldest slot of the app with the most slots, if that app has more than a quarter.
 */
export function createFollowerSlots(slotsMax: number): FollowerSlots {
  const shareMax = Math.max(1, Math.floor(slotsMax / 4))
  const held = new Map<string, Set<AbortController>>()
  let taken = 0

  function give(app: string, slot: AbortController): void {
    const slots = held.get(app) ?? new Set()
    held.set(app, slots.add(slot))
    taken += 1
  }

  function release(app: string, slot: AbortController): void {
    const slots = held.get(app)
    if (slots?.delete(slot) !== true) return
    if (slots.size === 0) held.delete(app)
    taken -= 1
  }

  function makeRoomFor(app: string): void {
    const [largest, slots] = [...held].reduce((most, one) => (one[1].size > most[1].size ? one : most), ['', new Set<AbortController>()])
    const [oldest] = slots
    if ((held.get(app)?.size ?? 0) >= shareMax || slots.size <= shareMax || oldest === undefined) {
      throw new EdgeError('overloaded', 'Too many requests follow the feed at once. Ask without wait, or try again later.', {
        retryAfterMs: 5000,
      })
    }
    release(largest, oldest)
    oldest.abort()
  }

  return {
    take(app) {
      if (taken >= slotsMax) makeRoomFor(app)
      const slot = new AbortController()
      give(app, slot)
      return { revoked: slot.signal, release: () => release(app, slot) }
    },
  }
}
