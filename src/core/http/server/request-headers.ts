import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Returns every value of a header, in order. `req.headers` hides repeated headers: Node joins them, or drops all but the first. */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): readonly string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** A `traceparent` header: version, trace id, parent id and flags (W3C Trace Context). Later versions may append fields. Zero ids are invalid. */
const TRACEPARENT =
  /^(?:00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/

/** Returns the trace id of a request as a field for log lines. The field is absent unless the request has exactly one valid `traceparent`. */
export function traceOf(req: Pick<IncomingMessage, 'rawHeaders'>): { readonly traceId?: string } {
  const values = headerValues(req, 'traceparent')
  const parts = values.length === 1 ? TRACEPARENT.exec(values[0] ?? '') : null
  const traceId = parts?.[1] ?? parts?.[2]
  return traceId === undefined ? {} : { traceId }
}

/** Returns the IP address of the client that sent a request. */
export type AddressOf = (req: IncomingMessage) => string

/**
 * Creates a function that returns the peer's address or, if the peer is a trusted proxy, the rightmost address in `X-Forwarded-For` that is
 * not a trusted proxy. A client may have forged the addresses to the left of that one.
 */
export function createAddressOf(trustProxy: readonly string[] = []): AddressOf {
  const isProxy = createIsProxy(trustProxy)
  return (req) => {
    const peer = peerOf(req)
    if (trustProxy.length === 0 || isIP(peer) === 0 || !isProxy(peer)) return peer
    const forwarded = headerValues(req, 'x-forwarded-for').flatMap((value) => value.split(','))
    let nearest = peer
    for (const hop of forwarded.reverse().map((text) => plain(withoutPort(text.trim())))) {
      if (isIP(hop) === 0) return nearest
      nearest = hop
      if (!isProxy(hop)) return hop
    }
    return nearest
  }
}

/** Creates a function that says whether the peer of a connection is a trusted proxy. It ignores `X-Forwarded-For`. */
export function createIsFromProxy(trustProxy: readonly string[]): (req: IncomingMessage) => boolean {
  const isProxy = createIsProxy(trustProxy)
  return (req) => isIP(peerOf(req)) !== 0 && isProxy(peerOf(req))
}

function peerOf(req: IncomingMessage): string {
  return plain(req.socket.remoteAddress ?? '')
}

function createIsProxy(trustProxy: readonly string[]): (address: string) => boolean {
  const proxies = new BlockList()
  for (const cidr of trustProxy) {
    const [address = '', bits] = cidr.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) proxies.addAddress(address, family)
    else proxies.addSubnet(address, Number(bits), family)
  }
  return (address) => proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Some proxies add the port of the client: `192.0.2.7:4711`, `[2001:db8::7]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d{1,5})?$/.exec(hop)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(hop)?.[1] ?? hop
}

/** Turns an IPv4-mapped IPv6 address into plain IPv4. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address
}

/** Returns the network under which failures of an address are counted: for IPv6 its /64, because one client usually controls a whole /64. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0')
  return [...groups, ...zeros, ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
