import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

export type AddressRefusal = 'loopback' | 'link_local' | 'metadata' | 'special' | 'own_port' | 'not_listed' | 'not_an_address'

type Address = ipaddr.IPv4 | ipaddr.IPv6
/** A network: an address, and how many of its leading bits all addresses of the network share. */
export type Network = readonly [Address, number]

const network = (cidr: string): Network => ipaddr.parseCIDR(cidr)

/** Metadata services of clouds, which give out credentials. The link-local ones are not listed, because all link-local addresses are refused. */
const METADATA = ['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32', 'fd00:ec2::/32', 'fd20:ce::/32'].map(network)

/** IPv6 addresses that embed an IPv4 address. `ipaddr.js` has no name for this range. */
const IPV4_COMPATIBLE = network('::/96')
const SPECIAL: ReadonlySet<string> = new Set([
  'unspecified',
  'broadcast',
  'multicast',
  'discard',
  'ipv4Mapped',
  'rfc6145',
  'rfc6052',
  '6to4',
  'teredo',
  'amt',
])

/** Parses an address, or a network in CIDR form. Null: the text is neither. An IPv4 address that is written as IPv6 becomes IPv4. */
export function parseNetwork(text: string): Network | null {
  const [written = '', bits] = text.split('/')
  // Check with `isIP` first, because `ipaddr.js` also accepts `10.1` and `012.0.0.1`.
  if (isIP(written) !== 0 && bits !== undefined && ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = parseAddress(text)
  return address === null ? null : [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** An entry of `delivery.allowNetworks`. */
export type Allowed =
  | { readonly kind: 'network'; readonly network: Network }
  | { readonly kind: 'origin'; readonly address: string; readonly port: number }
  | { readonly kind: 'host'; readonly name: string }

/** Parses an entry: a network, an address, or `address:port` (IPv6 in brackets). Any other text becomes a host name, in lower case. */
export function parseAllowed(text: string): Allowed {
  const network = parseNetwork(text)
  if (network !== null) return { kind: 'network', network }
  const [, address, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(text) ?? []
  if (address !== undefined && isIP(address) !== 0) return { kind: 'origin', address, port: Number(port) }
  return { kind: 'host', name: text.toLowerCase() }
}

function parseAddress(text: string): Address | null {
  return isIP(text) === 0 ? null : ipaddr.process(text)
}

/**
 * Says why the relay may not send to an address. Null: it may, because one of the listed networks contains the address. Link-local, metadata
 * and special addresses are always refused.
 */
export function refuseAddress(text: string, listed: readonly Network[]): AddressRefusal | null {
  const address = parseAddress(text)
  if (address === null) return 'not_an_address'
  const range = address.range()
  if (range === 'loopback') return listed.some((one) => isLoopback(one) && covers(one, address)) ? null : 'loopback'
  if (range === 'linkLocal') return 'link_local'
  if (SPECIAL.has(range) || isIn(address, IPV4_COMPATIBLE)) return 'special'
  if (METADATA.some((one) => isIn(address, one))) return 'metadata'
  return listed.some((one) => isIn(address, one)) ? null : 'not_listed'
}

/** Returns why all addresses of a network are refused even if the config lists it. Null: some of its addresses can be allowed. */
export function refuseNetwork(listed: Network): AddressRefusal | null {
  const [address, bits] = listed
  const kind = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  const cidr = `${address.toString()}/${bits}`
  const [first, last] = [kind.networkAddressFromCIDR(cidr), kind.broadcastAddressFromCIDR(cidr)]
  // If the first and the last address are of different ranges, the network also contains ordinary addresses.
  return first.range() === last.range() ? refuseAddress(first.toString(), [listed]) : null
}

/** Whether a network was listed to allow loopback. A wider network, such as 0.0.0.0/0, contains loopback only by chance. */
function isLoopback([address, bits]: Network): boolean {
  return address.range() === 'loopback' && bits >= 8
}

/**
 * Whether a listed loopback network includes a loopback address. Somebody who lists 127.0.0.0/8 means this machine. So that network includes
 * `::1` too, to which `localhost` may resolve.
 */
function covers(listed: Network, address: Address): boolean {
  return isIn(address, listed) || (listed[0].kind() === 'ipv4' && listed[1] === 8 && address.kind() === 'ipv6')
}

function isIn(address: Address, [base, bits]: Network): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}

export function isOwnAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address === null) return false
  if (address.range() === 'loopback') return true
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return own.some((one) => parseAddress(one.address)?.toNormalizedString() === address.toNormalizedString())
}
