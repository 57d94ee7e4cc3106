import { StorageFailure, systemCode } from './errors.ts'

/** What error codes mean. Each text is a clause without a full stop. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file or folder'],
  ['EACCES', 'permission is denied'],
  ['EPERM', 'permission is denied'],
  ['EISDIR', 'it is a folder'],
  ['ENOTDIR', 'a part of its path is not a folder'],
  ['ELOOP', 'its symbolic links form a loop'],
  ['ENAMETOOLONG', 'its name is too long'],
  ['EMFILE', 'too many files are open'],
  ['ENFILE', 'too many files are open'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
  ['EROFS', 'the file system is read-only'],
  ['EIO', 'the disk fails'],
  ['EADDRINUSE', 'another program uses it'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
  ['ECONNREFUSED', 'nothing listens there'],
  ['ECONNRESET', 'the connection was ended from the other side'],
  ['EPIPE', 'the connection was ended from the other side'],
  ['ETIMEDOUT', 'there was no answer in time'],
  ['EHOSTUNREACH', 'there is no route to it'],
  ['ENETUNREACH', 'there is no route to it'],
  ['ENOTFOUND', 'the name is not found'],
  ['EAI_AGAIN', 'the name cannot be looked up now'],
  // The HTTP client
  ['UND_ERR_SOCKET', 'the connection was ended from the other side'],
  ['UND_ERR_CONNECT_TIMEOUT', 'there was no answer in time'],
  ['UND_ERR_HEADERS_OVERFLOW', 'the head of the answer is too long'],
  ['UND_ERR_ABORTED', 'the proxy opened no tunnel'],
  ['UND_ERR_PRX_CONN', 'the proxy cannot be reached'],
  ['UND_ERR_PRX_TLS', 'the proxy does not speak TLS'],
  ['UNKNOWN', 'for an unknown reason'],
  // Codes of the relay itself
  ['NO_HTTP', 'the answer is not HTTP'],
  ['too_large', 'the answer is too long'],
  ['cut_short', 'the answer was cut short'],
  ['content_encoding', 'the answer is compressed, which was not asked for'],
  ['utf8', 'the answer is not in UTF-8'],
  ['json_syntax', 'the answer is no JSON'],
  ['too_deep', 'the answer nests too deep'],
  ['not_an_object', 'the answer is no JSON object'],
  ['no_statuses', 'the answer has no list `statuses`'],
  ['no_tracking_ids', 'the answer has no list `trackingIds`'],
  ['too_many_entries', 'the answer has too many statuses'],
  ['did_not_leave', 'the call could not be sent in time'],
  ['token_wait', 'there was no token in time'],
  ['token_store', 'the store could not record that a token is being requested'],
  ['password_unreadable', 'the file of the password cannot be read'],
  ['refused', 'the same password was refused before'],
  ['waiting', 'the same password was refused before, and is tried again later'],
  ['breaker', 'it failed too often, and is asked again later'],
  ['NOT_A_FILE_BUT_A_NAMED_PIPE', 'it is a named pipe'],
  ['NOT_A_FILE_BUT_A_SOCKET', 'it is a socket'],
  ['NOT_A_FILE_BUT_A_DEVICE', 'it is a device'],
  // PostgreSQL
  ['53100', "the disk of the database's server is full"],
  ['53200', 'the database has no memory left'],
  ['53300', 'the database has no connection left'],
  ['57P01', 'the connection to the database was lost'],
  ['57P02', 'the connection to the database was lost'],
  ['57P03', 'the database is starting or stopping'],
  ['25P03', 'the database ended a transaction of this relay that was idle for too long'],
  ['25006', 'the database is read-only'],
  ['57014', 'the database took too long'],
  ['55P03', 'the database took too long'],
])

const FAMILIES: readonly (readonly [begin: RegExp, reason: string])[] = [
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'the disk fails'],
  [/^SQLITE_(?:BUSY|LOCKED)/, 'another program has locked the store'],
  [/^SQLITE_CORRUPT/, 'the file of the store is damaged'],
  [/^SQLITE_NOTADB/, 'the file is not a database'],
  [/^SQLITE_READONLY/, 'the store is read-only'],
  [/^SQLITE_CANTOPEN/, 'the file of the store cannot be opened'],
  [/^SQLITE_NOMEM/, 'the memory is used up'],
  [/^HPE_/, 'the answer is not HTTP'],
  [/^08...$/, 'the connection to the database was lost'],
]

/** Says why the system refused something. Returns a rare code unchanged. */
export function systemReason(error: unknown): string {
  const code = systemCode(error)
  return code === null ? 'for an unknown reason' : reasonOfCode(code)
}

export function reasonOfCode(code: string): string {
  return knownReason(code) ?? code
}

/** Describes an error code. Null: the code is rare, or the text is not a code. */
export function knownReason(code: string): string | null {
  const fault = tlsFaultOf(code)
  if (fault !== null) return tlsMeaning(fault, 'the other side')
  return REASONS.get(code) ?? FAMILIES.find(([begin]) => begin.test(code))?.[1] ?? null
}

/** The code at the beginning of a message. An error that was copied from another thread has its code only there. */
const LEADING_CODE = /^([A-Z][A-Z0-9_]{3,63}): /

/**
 * Describes any error to a person, in a clause without a full stop. Replaces a message of the system, such as "ENOENT: no such file or
 * directory, open 'x'", with a description. Keeps a message that the relay itself wrote.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error).replace(/\.$/, '')
  // A storage failure has a code, but the relay itself wrote its message.
  const code = error instanceof StorageFailure ? null : (systemCode(error) ?? LEADING_CODE.exec(error.message)?.[1] ?? null)
  const reason = code === null || !isSystems(code, error.message) ? null : knownReason(code)
  if (reason === null) return error.message.replace(/\.$/, '')
  const path = pathOf(error)
  return path === null ? reason : `${path}: ${reason}`
}

/** Codes about a disk that was written to. */
const OF_WRITTEN = new Set(['ENOSPC', 'EDQUOT', 'EROFS'])

/** Returns the path that a system call was about: of a copy, the one that failed. An error from another thread has it only in its message. */
function pathOf(error: Error): string | null {
  if (OF_WRITTEN.has(systemCode(error) ?? '') && 'dest' in error && typeof error.dest === 'string') return error.dest
  if ('path' in error && typeof error.path === 'string') return error.path
  return /^[A-Z]+: .*, [a-z]+ '([^']+)'/.exec(error.message)?.[1] ?? null
}

/** Whether the system or a database wrote the message, not the relay. The system's messages contain the code. A database's may lack it. */
function isSystems(code: string, message: string): boolean {
  return message.includes(code) || /^SQLITE_|^\d/.test(code)
}

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
