/** A relay of the demo. */
export interface DemoReplica {
  readonly name: string
  readonly pid: number
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves with the reason when the relay ends. */
  readonly died: Promise<unknown>
  isRunning(): boolean
  stop(): Promise<void>
}

/** The relays of the demo, which share a store. */
export interface DemoRelays {
  readonly replicas: readonly DemoReplica[]
  /** The address that the carrier pushes to. */
  readonly webhookUrl: string
  /** The name of the store. */
  readonly store: string
  stop(): Promise<void>
}
