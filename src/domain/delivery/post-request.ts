/** A request to post to an endpoint. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
  /**
   * Called when there is a connection, right before the first byte is sent. If it returns false, nothing is sent and the result is
   * `withdrawn`.
   */
  readonly mayLeave?: () => boolean
}

/** How to reach an endpoint: through a proxy (URL), or with a private authority (PEM) that is trusted as well as the public ones. */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
}
