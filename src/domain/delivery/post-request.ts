/** A request to post to an endpoint. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
  /** Asked once there is a connection, right before the first byte leaves; false: nothing leaves, and the result is `withdrawn`. */
  readonly mayLeave?: () => boolean
}

/** How to reach an endpoint, unless directly: through a proxy (URL), or trusting a private authority (PEM) as well as the public ones. */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
}
