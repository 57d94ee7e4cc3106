/** A request to post to an endpoint. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
  /**
   * Called once there is a connection, right before the first byte leaves. If it returns false, nothing leaves and the result is
   * `withdrawn`.
   */
  readonly mayLeave?: () => boolean
}

/** How an endpoint is reached if not directly: through a proxy (URL), or trusting a private authority (PEM) besides the public ones. */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
}
