import type { EndpointSettings } from '../../../src/core/domain/delivery/endpoint-state.ts'

/** Something that happened to a parcel. */
export interface Fact {
  readonly nth: number
  readonly atMs: number
  readonly status: string
}

/**
 * A message about an entry. `all`: to all endpoints. `backfill`: to those with backfill, and to those that began by `beganBy`. `revealed`: to all
 * that no earlier message of `of` went to.
 */
type Telling = { readonly fact: Fact; readonly parcel: number; readonly recordedAtMs: number } & (
  | { readonly kind: 'all' }
  | { readonly kind: 'backfill'; readonly beganBy: number | null }
  | { readonly kind: 'revealed'; readonly of: readonly number[] }
)

/** What an endpoint must get: messages from index `from` on. */
export interface Owed {
  readonly status: string | null
  readonly from: number
  beganAtMs: number
  /** Each range with backfill: the index of its first message, and the index after its last. */
  readonly backfill: [from: number, to: number][]
  /** The index of the next message that it reads in the feed; null: it has caught up, and is sent each message when that is recorded. */
  reads: number | null
  /** The indexes of the messages that it was sent. */
  readonly sent: number[]
}

/** What was said of an entry. `places`: the messages that told it as backfill. `isToldToAll`: no further message is needed. */
interface Told {
  readonly places: readonly number[]
  readonly isToldToAll: boolean
}

/** Decides for parcels, which may be joined, which messages each endpoint must get, from the text of the rules 6.6 and 7.1 alone. */
export function createTellingModel(startRecentMs: number, parcels: number) {
  let recentMs = startRecentMs
  const tellings: Telling[] = []
  /** For each parcel, the one that it is a part of. */
  const holders = Array.from({ length: parcels }, () => ({ knownSinceMs: Number.POSITIVE_INFINITY, told: new Map<Fact, Told>() }))
  /** The index of the first message that is still in the feed. */
  let kept = 0
  const endpoints: Owed[] = []

  /** Joins the parcels, and returns what they are then a part of. */
  function join(joined: readonly number[]) {
    const [holder, ...others] = new Set(joined.map((parcel) => holders[parcel]))
    if (holder === undefined) throw new Error('there is no such parcel')
    for (const other of others) {
      if (other === undefined) continue
      holder.knownSinceMs = Math.min(holder.knownSinceMs, other.knownSinceMs)
      for (const [fact, { places, isToldToAll }] of other.told) {
        const known = holder.told.get(fact)
        holder.told.set(fact, { places: [...(known?.places ?? []), ...places], isToldToAll: isToldToAll || known?.isToldToAll === true })
      }
      for (const [parcel, one] of holders.entries()) if (one === other) holders[parcel] = holder
    }
    return holder
  }
  function isTold({ backfill, beganAtMs, from }: Owed, place: number): boolean {
    const telling = tellings[place]
    if (telling?.kind !== 'backfill') return false
    if (backfill.some(([first, end]) => place >= first && place < end)) return true
    return telling.beganBy !== null && place >= from && beganAtMs <= telling.beganBy
  }
  function isFor(endpoint: Owed, place: number, telling: Telling): boolean {
    if (place < endpoint.from || (endpoint.status !== null && endpoint.status !== telling.fact.status)) return false
    if (telling.kind === 'backfill') return isTold(endpoint, place)
    return telling.kind === 'all' || !telling.of.some((earlier) => isTold(endpoint, earlier))
  }
  /** Whether the endpoint was sent the entry of a message by another one, of a parcel that is now the same. */
  function wasSent({ sent }: Owed, { fact, parcel }: Telling): boolean {
    return sent.some((place) => tellings[place]?.fact === fact && holders[tellings[place].parcel] === holders[parcel])
  }
  function tell(telling: Telling): void {
    const place = tellings.push(telling) - 1
    for (const endpoint of endpoints) if (endpoint.reads === null && isFor(endpoint, place, telling)) endpoint.sent.push(place)
  }
  /** Returns when a message was recorded, as far as the messages about new entries show it. */
  function recordedAt(place: number): number | null {
    const isNew = (one: Telling, at: number) => one.kind !== 'revealed' && at >= kept
    const at = tellings.findLastIndex((one, nth) => nth <= place && isNew(one, nth))
    return tellings[at === -1 ? tellings.findIndex((one, nth) => nth > place && isNew(one, nth)) : at]?.recordedAtMs ?? null
  }
  return {
    kept: () => kept,
    recorded: () => tellings.length,
    /** Chooses the message of the feed at which an endpoint starts; null: it starts now. */
    placeFrom: (from: number | null) => (from === null || kept >= tellings.length ? null : kept + (from % (tellings.length - kept))),
    begin(settings: Partial<EndpointSettings>, from: number | null, nowMs: number): Owed {
      const place = from ?? tellings.length
      const endpoint: Owed = {
        status: settings.filters?.status?.[0] ?? null,
        from: place,
        beganAtMs: from === null ? nowMs : (recordedAt(from) ?? nowMs),
        backfill: settings.backfill === true ? [[place, Number.POSITIVE_INFINITY]] : [],
        reads: from,
        sent: [],
      }
      endpoints.push(endpoint)
      return endpoint
    },
    /** Lets an endpoint read the messages before the index `next`. `isDone`: it has then caught up. */
    read(endpoint: Owed, next: number, isDone: boolean): void {
      for (const [place, telling] of tellings.entries()) {
        if (endpoint.reads === null || place < endpoint.reads || place >= next) continue
        if (isFor(endpoint, place, telling) && !wasSent(endpoint, telling)) endpoint.sent.push(place)
      }
      endpoint.reads = isDone ? null : next
    },
    /** Switches `backfill` for what it is sent from now on, and returns whether it is now on. */
    turn({ backfill, reads }: Owed): boolean {
      const next = reads ?? tellings.length
      const stretch = backfill.at(-1)
      const isOn = stretch?.[1] === Number.POSITIVE_INFINITY
      if (isOn) stretch[1] = next
      else backfill.push([next, Number.POSITIVE_INFINITY])
      return !isOn
    },
    upgrade(nextRecentMs: number): void {
      recentMs = nextRecentMs
    },
    prune(): void {
      kept = tellings.length
    },
    push(fact: Fact, about: readonly number[], nowMs: number): void {
      const holder = join(about)
      holder.knownSinceMs = Math.min(holder.knownSinceMs, fact.atMs, nowMs)
      const entries = holder.told
      const before = entries.get(fact)
      if (before?.isToldToAll === true) return
      const said = { fact, parcel: about[0] ?? 0, recordedAtMs: nowMs }
      tell(before === undefined ? { ...said, kind: 'all' } : { ...said, kind: 'revealed', of: before.places })
      entries.set(fact, { places: before?.places ?? [], isToldToAll: true })
    },
    /** The relay numbers the entries of a poll from the oldest to the newest. */
    poll({ listed, watch }: { readonly listed: readonly Fact[]; readonly watch: boolean }, about: readonly number[], nowMs: number): void {
      const holder = join(about)
      if (watch) holder.knownSinceMs = Math.min(holder.knownSinceMs, nowMs)
      const { told: entries, knownSinceMs: sinceMs } = holder
      for (const fact of listed.toSorted((a, b) => a.atMs - b.atMs)) {
        if (entries.has(fact)) continue
        const said = { fact, parcel: about[0] ?? 0, recordedAtMs: nowMs }
        const isBackfill = fact.atMs < sinceMs
        const beganBy = nowMs - fact.atMs > recentMs ? null : Math.min(fact.atMs, nowMs)
        entries.set(fact, { places: isBackfill ? [tellings.length] : [], isToldToAll: !isBackfill })
        tell(isBackfill ? { ...said, kind: 'backfill', beganBy } : { ...said, kind: 'all' })
      }
    },
    owedTo: ({ sent }: Owed): readonly number[] => sent.map((place) => tellings[place]?.fact.nth ?? -1).sort((a, b) => a - b),
  }
}
