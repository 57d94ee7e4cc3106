import type { DrivenMembership } from './membership.ts'
import type { ReplicaTable, Watermarks } from './replica-table.rows.ts'

/** Called when a replica, this one included, has changed something in the shared store. */
export interface ReplicaChangeListener {
  /** The feed has grown. */
  committed(): void
  /** The waiting deliveries, or the endpoints themselves, have changed. */
  reordered(): void
  /** A replica has come or gone, or its config has changed. */
  replicasChanged(): void
  /** Another replica is moving the store. */
  moving(): void
  /** The server may have lost data that this replica has already read. */
  setBack(): void
}

export interface ReplicaChangesPorts {
  readonly table: Pick<ReplicaTable, 'look'>
  readonly membership: Pick<DrivenMembership, 'share'>
  readonly listener: ReplicaChangeListener
}

/**
 * Creates a function that looks at the store and notifies the listener of changes since its last call. The function also starts to
 * distribute the roles among the replicas. It does not wait for that, because another replica may need time to give up a role.
 */
export function createReplicaChanges({ table, membership, listener }: ReplicaChangesPorts): () => Promise<void> {
  let before: Watermarks | null = null
  let isSharing = false
  const shareOnce = async (seen: Watermarks | null) => {
    if (isSharing) return
    isSharing = true
    await membership.share(seen)
    isSharing = false
  }
  return async () => {
    const seen = await table.look().catch(() => null)
    void shareOnce(seen)
    if (seen === null) return
    notify(before, seen, listener)
    before = seen
  }
}

/** `before` null: this is the first look. */
function notify(before: Watermarks | null, seen: Watermarks, listener: ReplicaChangeListener): void {
  if (seen.isMoving && before?.isMoving !== true) listener.moving()
  if (before === null) return
  // If a number is lower than before, anything may have changed.
  const isSetBack = seen.server !== before.server || isLower(seen, before)
  if (isSetBack) listener.setBack()
  if (isSetBack || seen.sequence > before.sequence) listener.committed()
  if (isSetBack || seen.orders > before.orders || seen.endpoints > before.endpoints) listener.reordered()
  if (isSetBack || seen.roles > before.roles) listener.replicasChanged()
}

function isLower(seen: Watermarks, before: Watermarks): boolean {
  return seen.sequence < before.sequence || seen.orders < before.orders || seen.endpoints < before.endpoints || seen.roles < before.roles
}
