/** A session of the portal that was logged out. */
export interface EndedSession {
  /** The id of the session, or the digest of a token without an id. */
  readonly session: string
  /** Until when it is remembered: no token of the session is valid any more then. Epoch milliseconds. */
  readonly untilMs: number
  readonly nowMs: number
}
