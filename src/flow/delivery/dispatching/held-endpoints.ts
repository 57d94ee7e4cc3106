/** The endpoints that this replica delivers to. */
export interface HeldEndpoints {
  /** Their ids; null: all. */
  endpoints(): readonly string[] | null
  /** Whether an attempt may begin now. */
  delivers(endpointId: string): boolean
  /** Rises when all were lost: what was claimed before may be under way elsewhere, and its results may no longer be written down. */
  term(): number
  /** Aborted when this replica may do nothing for them, until it knows more. */
  signal(): AbortSignal
}
