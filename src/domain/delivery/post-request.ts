export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
  /** Called once the connection is open, right before the first byte is sent. If it returns false, nothing is sent and the result is `withdrawn`. */
  readonly mayLeave?: () => boolean
}

/**
 * How to connect to an endpoint that needs more than its URL. `proxy`: the URL of a proxy. `ca`: a certificate authority (PEM) to trust in
 * addition to the public ones. `client`: a certificate to present to the endpoint.
 */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
  readonly client?: ClientCertificate
  /** The URL to post to, if the URL in the endpoint's settings is masked. */
  readonly url?: string
  /** Whether the request goes to `operator.url`. Its host is always allowed, because the config names it. */
  readonly isOperator?: boolean
}

/** In PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}
