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

/**
 * How an endpoint is reached if not directly: through a proxy (URL), trusting a private authority (PEM) besides the public ones, or showing
 * a client certificate.
 */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
  readonly client?: ClientCertificate
  /** The address, where the endpoint's settings hold it only masked. */
  readonly url?: string
  /** Whether it leads to the operator's address, whose host is allowed because the config names it. */
  readonly isOperator?: boolean
}

/** A certificate and its key, in PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}
