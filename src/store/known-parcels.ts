import { LRUCache } from 'lru-cache'
import type { IdentifierState, ParcelState } from '../flow/ports.ts'
import type { Session } from './engine.ts'
import { createParcelMemory } from './parcel-memory.ts'
import { createParcel, findIdentifier, findParcel, saveIdentifier, saveParcel } from './parcels.ts'

/** So many parcels, and so many identifiers, are kept at hand: some 10 MB. */
const REMEMBERED = 16_384

/**
 * Parcels as the one writer left them, so that the next event of a parcel need not look for it again. It must be told of whatever else
 * changes them, and of every transaction that was undone.
 */
export interface KnownParcels {
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  /** See the verb of the same name. */
  recallParcel(trackingId: string): ParcelState | null
  saveIdentifier(identifier: IdentifierState): void
  create(nowMs: number): Promise<ParcelState>
  /** Null: there is none, because it was joined to another. */
  find(parcelId: number): Promise<ParcelState | null>
  save(state: ParcelState): void
  forget(): void
}

export function createKnownParcels(session: Session): KnownParcels {
  const parcels = createParcelMemory(REMEMBERED)
  const identifiers = new LRUCache<string, IdentifierState>({ max: REMEMBERED })

  return {
    async findIdentifiers(values) {
      const found: IdentifierState[] = []
      for (const value of values) {
        const remembered = identifiers.get(value)
        const known = remembered ?? (await findIdentifier(session, value))
        if (known === null) continue
        if (remembered === undefined) identifiers.set(value, known)
        found.push(known)
      }
      return found
    },
    recallParcel(trackingId) {
      const known = identifiers.get(trackingId)
      return known?.isTrackingId === true ? parcels.get(known.parcelId) : null
    },
    saveIdentifier(identifier) {
      saveIdentifier(session, identifier)
      identifiers.set(identifier.value, identifier)
    },
    async create(nowMs) {
      const state = await createParcel(session, nowMs)
      parcels.set(state)
      return state
    },
    async find(parcelId) {
      const known = parcels.get(parcelId)
      if (known !== null) return known
      const state = await findParcel(session, parcelId)
      if (state !== null) parcels.set(state)
      return state
    },
    save(state) {
      saveParcel(session, state, parcels.get(state.parcelId))
      parcels.set(state)
    },
    forget() {
      parcels.clear()
      identifiers.clear()
    },
  }
}
