/** Why TLS could not be set up with another machine. `tls`: for a rarer reason. */
export type TlsFault =
  | 'certificate_expired'
  | 'certificate_not_yet_valid'
  | 'certificate_wrong_name'
  | 'certificate_self_signed'
  | 'certificate_untrusted'
  | 'tls_protocol'
  | 'tls'

/** The codes of Node and OpenSSL. The first that matches decides. */
const CODES: readonly (readonly [code: RegExp, fault: TlsFault])[] = [
  [/^CERT_HAS_EXPIRED$/, 'certificate_expired'],
  [/^CERT_NOT_YET_VALID$/, 'certificate_not_yet_valid'],
  [/^(?:ERR_TLS_CERT_ALTNAME_|HOSTNAME_MISMATCH)/, 'certificate_wrong_name'],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, 'certificate_self_signed'],
  [/^(?:UNABLE_TO_|SELF_SIGNED_CERT_IN_CHAIN$|CERT_UNTRUSTED$|INVALID_CA$)/, 'certificate_untrusted'],
  // Our own OpenSSL did not understand the other side, or the other side said that it does not speak our versions.
  [/^(?:EPROTO$|ERR_SSL_(?:.*(?:VERSION|PROTOCOL|PACKET_LENGTH|HTTP_REQUEST|NO_CIPHERS|NO_SHARED_CIPHER)))/, 'tls_protocol'],
  [/^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|INVALID_PURPOSE|UNABLE_|SELF_SIGNED_|DEPTH_ZERO_)/, 'tls'],
]

/** Says why TLS failed. Null: the code says something else. */
export function tlsFaultOf(code: string): TlsFault | null {
  return CODES.find(([pattern]) => pattern.test(code))?.[1] ?? null
}

/** `meaning`: a clause about the host without a full stop. `todo`: a sentence; `authority`: the setting that names a private authority. */
interface TlsWords {
  readonly meaning: (host: string) => string
  readonly todo: (authority: string) => string
}

const WORDS: Readonly<Record<TlsFault, TlsWords>> = {
  certificate_expired: {
    meaning: (host) => `the certificate of ${host} has expired`,
    todo: () => 'Whoever runs it must renew its certificate.',
  },
  certificate_not_yet_valid: {
    meaning: (host) => `the certificate of ${host} is not valid yet`,
    todo: () => 'Is the clock of this machine right? If so, whoever runs it must install a certificate that is valid now.',
  },
  certificate_wrong_name: {
    meaning: (host) => `the certificate of ${host} is for another name`,
    todo: () => 'Use a host name that is in the certificate, or have one issued for this name.',
  },
  certificate_self_signed: {
    meaning: (host) => `the certificate of ${host} is signed by itself, so nobody vouches for it`,
    todo: (authority) => `Have an authority sign it, or name the certificate itself in ${authority}.`,
  },
  certificate_untrusted: {
    meaning: (host) => `the certificate of ${host} is not trusted: an unknown authority has signed it, or its chain is incomplete`,
    todo: (authority) =>
      `Name a private authority in ${authority}. If the authority is a public one, the server must send the whole chain.`,
  },
  tls_protocol: {
    meaning: (host) => `${host} does not speak TLS at this port, or no version that the relay accepts (1.2 or later)`,
    todo: () => 'Compare the scheme (http or https) and the port of its address, and the versions of TLS that it offers.',
  },
  tls: {
    meaning: (host) => `TLS with ${host} fails, or it does not accept our certificate`,
    todo: () => 'Ask whoever runs it what its log says, and whether it wants a client certificate.',
  },
}

export const TLS_FAULTS: readonly string[] = Object.keys(WORDS)

export function isTlsFault(reason: string): reason is TlsFault {
  return Object.hasOwn(WORDS, reason)
}

/** Says what is wrong, in a clause without a full stop. */
export function tlsMeaning(fault: TlsFault, host: string): string {
  return WORDS[fault].meaning(host)
}

/** Says what to do, in a sentence. `authority`: the setting that names a private authority. */
export function tlsRemedy(fault: TlsFault, authority: string): string {
  return WORDS[fault].todo(authority)
}
