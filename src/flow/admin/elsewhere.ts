import type { Watermarks } from './ports.ts'

/** What other replicas have done, or this one itself. */
export interface Elsewhere {
  /** The feed has grown. */
  committed(): void
  /** What waits for endpoints, or the endpoints themselves, have changed. */
  reordered(): void
  /** A replica has come or gone, or its config has changed. */
  replicasChanged(): void
  /** The store is being moved by another. */
  moving(): void
  /** The server may have lost what was read from it. */
  setBack(): void
}

/** Tells what has changed from one look at the store to the next. `before`: null: this is the first. */
export function tellElsewhere(before: Watermarks | null, seen: Watermarks, elsewhere: Elsewhere): void {
  if (seen.isMoving && before?.isMoving !== true) elsewhere.moving()
  if (before === null) return
  // Of lower numbers than before nobody can say what has changed: everything is looked at.
  const isSetBack = seen.server !== before.server || isLower(seen, before)
  if (isSetBack) elsewhere.setBack()
  if (isSetBack || seen.sequence > before.sequence) elsewhere.committed()
  if (isSetBack || seen.orders > before.orders || seen.endpoints > before.endpoints) elsewhere.reordered()
  if (isSetBack || seen.roles > before.roles) elsewhere.replicasChanged()
}

function isLower(seen: Watermarks, before: Watermarks): boolean {
  return seen.sequence < before.sequence || seen.orders < before.orders || seen.endpoints < before.endpoints || seen.roles < before.roles
}
