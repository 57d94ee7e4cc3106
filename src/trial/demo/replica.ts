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

/** The relays of the demo: one, or several that share a store. */
export interface DemoRelays {
  readonly replicas: readonly DemoReplica[]
  /** The address to which the carrier sends its pushes. */
  readonly webhookUrl: string
  /** The path of the SQLite file, or the URL of the PostgreSQL database. */
  readonly store: string
  stop(): Promise<void>
}
