export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
}

/** How an endpoint is reached, if not plainly: through a proxy, and trusting a private authority (PEM) besides the well-known ones. */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
}
