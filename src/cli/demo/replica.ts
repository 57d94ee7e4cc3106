/** A relay of the demo. */
export interface DemoReplica {
  readonly name: string
  readonly pid: number
  readonly publicUrl: string
  readonly internalUrl: string
  /** Resolves when it has ended, with the reason. */
  readonly died: Promise<unknown>
  isRunning(): boolean
  stop(): Promise<void>
}

/** The relays of the demo, which share a store. */
export interface DemoRelays {
  readonly replicas: readonly DemoReplica[]
  /** Where the carrier pushes. */
  readonly webhookUrl: string
  /** The name of the store. */
  readonly store: string
  stop(): Promise<void>
}
