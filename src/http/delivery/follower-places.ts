import { EdgeError } from '../server/errors.ts'

/** Whoever follows the feed holds one: each costs memory and writes for as long as it stays. */
export interface Place {
  /** Aborted when another app is given the place. */
  readonly revoked: AbortSignal
  release(): void
}

export interface FollowerPlaces {
  /** Throws `overloaded` when all are taken and this app holds its share, or no app holds more. */
  take(app: string): Place
}

/**
 * Deals out `limits.feedFollowers`. One app may hold them all while nobody else asks; once they are taken, whoever holds more than a quarter
 * makes room for an app that holds less, the longest place first.
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
      throw new EdgeError('overloaded', 'Too many follow the feed at once. Ask for plain pages, or try again later.', {
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
