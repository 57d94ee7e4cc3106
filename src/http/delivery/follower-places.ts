import { EdgeError } from '../server/errors.ts'

/** A slot for one follower of the feed, which costs memory and writes while it is held. */
export interface Place {
  /** Aborted when the place goes to another app. */
  readonly revoked: AbortSignal
  release(): void
}

export interface FollowerPlaces {
  /** Throws `overloaded` when all places are taken and either this app has its share or no app holds more than its own. */
  take(app: string): Place
}

/**
 * Hands out the places of `limits.feedFollowers`. One app may hold them all while no other asks. Once all are taken, an app that holds more
 * than a quarter gives its oldest place to an app that holds less.
 */
export function createFollowerPlaces(placesMax: number): FollowerPlaces {
  const shareMax = Math.max(1, Math.floor(placesMax / 4))
  const held = new Map<string, Set<AbortController>>()
  let taken = 0

  function give(app: string, place: AbortController): void {
    const places = held.get(app) ?? new Set()
    held.set(app, places.add(place))
    taken += 1
  }

  function release(app: string, place: AbortController): void {
    const places = held.get(app)
    if (places?.delete(place) !== true) return
    if (places.size === 0) held.delete(app)
    taken -= 1
  }

  function makeRoomFor(app: string): void {
    const [largest, places] = [...held].reduce((most, one) => (one[1].size > most[1].size ? one : most), ['', new Set<AbortController>()])
    const [oldest] = places
    if ((held.get(app)?.size ?? 0) >= shareMax || places.size <= shareMax || oldest === undefined) {
      throw new EdgeError('overloaded', 'Too many requests follow the feed at once. Ask without wait, or try again later.', {
        retryAfterMs: 5000,
      })
    }
    release(largest, oldest)
    oldest.abort()
  }

  return {
    take(app) {
      if (taken >= placesMax) makeRoomFor(app)
      const place = new AbortController()
      give(app, place)
      return { revoked: place.signal, release: () => release(app, place) }
    },
  }
}
