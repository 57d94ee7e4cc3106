import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type AddressRefusal, isOwnAddress, type Network, parseAllowed, refuseAddress } from './address-rules.ts'

/** Why the relay may not send to a URL: the URL is badly written, or leads to an address that is not allowed. */
export type EgressRefusal = 'malformed' | 'scheme' | 'userinfo' | 'port' | 'host_form' | AddressRefusal

export type UrlVerdict =
  /** `path` includes the query. */
  { readonly ok: true; readonly origin: string; readonly path: string } | { readonly ok: false; readonly reason: EgressRefusal }

type ReadUrl = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly reason: EgressRefusal }

/** Whether the relay may connect to a host. The caller must connect to one of `addresses`, and must not resolve the name again. */
export type HostVerdict =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly reason: EgressRefusal }

/** Resolves a host name to all of its addresses. Rejects if the name has no address. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

export interface EgressOptions {
  /** `delivery.allowNetworks`: networks, addresses, host names, and `address:port`. Only the last form allows a port of the relay itself. */
  readonly allowNetworks: readonly string[]
  /** Returns the ports on which the relay itself listens. Empty: it does not listen yet. */
  readonly ownPorts: () => readonly number[]
  readonly lookup?: Lookup
}

/** The most cached verdicts. Each delivery attempt needs one, and parsing a URL takes as much processor time as posting to it. */
const REMEMBERED = 1000

/** Decides where the relay may send. Only listed addresses are allowed. */
export type EgressGuard = ReturnType<typeof createEgressGuard>

const resolveAll: Lookup = async (hostname) => {
  const answers = await systemLookup(hostname, { all: true })
  return answers.map(({ address }) => address)
}

/** Resolves hosts and refuses none. Used for hosts that the config names, such as the carrier. */
export const ANY_HOST: Pick<EgressGuard, 'checkHost'> = {
  async checkHost(hostname) {
    return { ok: true, addresses: isIP(hostname) === 0 ? await resolveAll(hostname) : [hostname] }
  },
}

export function createEgressGuard({ allowNetworks, ownPorts, lookup = resolveAll }: EgressOptions) {
  const { networks, hosts, origins } = readAllowed(allowNetworks)
  const resolve = sharingLookups(lookup)

  function refuse(address: string, port: number, hostname: string): EgressRefusal | null {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    const isListedPort = origins.has(`${address}:${port}`)
    // A listed name may lead to every address except those that are always refused. Only a name such as `localhost` may lead to loopback.
    const covered: readonly AddressRefusal[] = [
      ...(isListedPort || hosts.has(name) ? (['not_listed'] as const) : []),
      ...(isListedPort || (hosts.has(name) && isLocalName(name)) ? (['loopback'] as const) : []),
    ]
    const refusal = refuseAddress(address, networks)
    if (refusal !== null && !covered.includes(refusal)) return refusal
    return ownPorts().includes(port) && !isListedPort && isOwnAddress(address) ? 'own_port' : null
  }

  function check(text: string, addressOf: (hostname: string) => string | null): UrlVerdict {
    const read = readUrl(text)
    if (!read.ok) return read
    const { url } = read
    const hostname = bareHostname(url)
    const address = isIP(hostname) === 0 ? addressOf(hostname) : hostname
    const reason = address === null ? null : refuse(address, portOf(url), hostname)
    return reason === null ? { ok: true, origin: url.origin, path: url.pathname + url.search } : { ok: false, reason }
  }

  return {
    /**
     * Checks how a URL is written and, if its host is an address, whether that address is allowed. Resolves no names. Used when an endpoint is
     * saved, and before every delivery attempt.
     */
    checkUrl: remembering((text) => check(text, () => null), ownPorts),
    /**
     * Like `checkUrl`, for a URL that is requested through a proxy. The proxy resolves names, so their addresses cannot be checked. But names
     * such as `localhost` are treated like 127.0.0.1.
     */
    checkProxiedUrl: remembering(
      (text) => check(text, (hostname) => (isLocalName(hostname.toLowerCase().replace(/\.$/, '')) ? '127.0.0.1' : null)),
      ownPorts,
    ),
    /** Resolves a host. Refuses it if any of its addresses is not allowed. Rejects if the name cannot be resolved. */
    async checkHost(hostname: string, port: number): Promise<HostVerdict> {
      const addresses = isIP(hostname) === 0 ? await resolve(hostname) : [hostname]
      const reason = addresses.map((address) => refuse(address, port, hostname)).find((refusal) => refusal !== null)
      if (reason !== undefined) return { ok: false, reason }
      return addresses.length === 0 ? { ok: false, reason: 'not_an_address' } : { ok: true, addresses }
    },
  }
}

/** Caches verdicts by URL. A verdict depends only on the URL and on the relay's own ports, so a change of the ports empties the cache. */
function remembering(check: (text: string) => UrlVerdict, ownPorts: () => readonly number[]): (text: string) => UrlVerdict {
  const verdicts = new Map<string, UrlVerdict>()
  let portsThen: readonly number[] = []
  return (text) => {
    const ports = ownPorts()
    const isSame = ports.length === portsThen.length && ports.every((port, index) => port === portsThen[index])
    if (!isSame || verdicts.size >= REMEMBERED) verdicts.clear()
    if (!isSame) portsThen = [...ports]
    const known = verdicts.get(text)
    if (known !== undefined) return known
    const verdict = check(text)
    verdicts.set(text, verdict)
    return verdict
  }
}

/**
 * Parses a URL, and refuses one that a reader could misunderstand. Node's parser accepts too much: it repairs `http:host`, backslashes and
 * tabs, and turns `2130706433`, `0x7f.1`, `%31` and circled digits into addresses that a reader would not expect.
 */
function readUrl(text: string): ReadUrl {
  const refused = (reason: EgressRefusal): ReadUrl => ({ ok: false, reason })
  const url = URL.parse(text)
  if (url === null) return refused('malformed')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return refused('scheme')
  const authority = /^https?:\/\/([^\s/\\?#]+)(?:[/?][^\s\\#]*)?$/i.exec(text)?.[1]
  if (authority === undefined || /\p{Cc}/u.test(text)) return refused('malformed')
  if (authority.includes('@') || url.username !== '' || url.password !== '') return refused('userinfo')
  if (url.port === '0') return refused('port')
  const written = authority.replace(/:\d*$/, '')
  if (!url.hostname.startsWith('[') && written.toLowerCase() !== url.hostname) return refused('host_form')
  return { ok: true, url }
}

/** Returns the host name, without the brackets around an IPv6 address. */
function bareHostname(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function portOf(url: URL): number {
  return Number(url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port)
}

function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

function readAllowed(allowNetworks: readonly string[]) {
  const networks: Network[] = []
  const hosts = new Set<string>()
  const origins = new Set<string>()
  for (const text of allowNetworks) {
    const allowed = parseAllowed(text)
    if (allowed.kind === 'network') networks.push(allowed.network)
    else if (allowed.kind === 'origin') origins.add(`${allowed.address}:${allowed.port}`)
    else hosts.add(allowed.name)
  }
  return { networks, hosts, origins }
}

/**
 * Shares one lookup among all callers that resolve the same name at the same time. Node runs only a few lookups at once, so many lookups of a
 * name whose DNS server does not answer would block all other names.
 */
function sharingLookups(lookup: Lookup): Lookup {
  const running = new Map<string, Promise<readonly string[]>>()
  return (hostname) => {
    const shared = running.get(hostname) ?? lookup(hostname).finally(() => running.delete(hostname))
    running.set(hostname, shared)
    return shared
  }
}
