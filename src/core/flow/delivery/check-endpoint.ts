import { fixedHeaderProblem, isStandardKey, STANDARD_KEY_RULE } from '../../domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { wrongInput } from '../../domain/read-input.ts'
import type { Vault } from '../ports.ts'

/** The settings that limit endpoints. */
export interface EndpointRules {
  /** Returns why nothing may be sent to a URL; null: events may be sent to it. */
  readonly refuseUrl: (url: string) => string | null
  /** The header in which a proxy names the person to the portal (`portal.trustedHeader`); null: none is configured. */
  readonly trustedHeader: () => string | null
}

/** Throws `bad_request` if nothing may be sent to the URL. */
export function checkUrl({ url }: { readonly url?: string | undefined }, { refuseUrl }: EndpointRules): void {
  const refusal = url === undefined ? null : refuseUrl(url)
  if (refusal !== null) throw wrongInput('body', 'url', describeRefusal(refusal))
}

/** Checks the names of fixed headers against the settings of the relay. Throws `bad_request`. */
export function checkHeaders(headers: Readonly<Record<string, unknown>>, { trustedHeader }: EndpointRules): void {
  for (const name of Object.keys(headers)) {
    const problem = fixedHeaderProblem(name, trustedHeader())
    if (problem !== null) throw wrongInput('body', 'headers', `headers.${name} ${problem}.`)
  }
}

/** Seals the values of fixed headers for an endpoint; null stays null. */
export async function sealHeaders<Value extends string | null>(
  headers: Readonly<Record<string, Value>>,
  endpointId: string,
  vault: Pick<Vault, 'seal'>,
) {
  const seal = async ([name, value]: readonly [string, Value]) =>
    [name, value === null ? value : await vault.seal(value, endpointId)] as const
  return Object.fromEntries(await Promise.all(Object.entries(headers).map(seal)))
}

/** Throws `bad_request` if the libraries of Standard Webhooks would refuse the key. */
export function checkStandardKey(key: string): void {
  if (!isStandardKey(key)) throw wrongInput('body', 'sharedKey', `sharedKey ${STANDARD_KEY_RULE}.`)
}

/** Checks the keys of an endpoint with `signature: standard-webhooks`: the given key or, if none is given, the present keys. */
export async function checkStandardKeys(
  { endpoint, keys }: EndpointState,
  sharedKey: string | null | undefined,
  vault: Vault,
): Promise<void> {
  if (typeof sharedKey === 'string') checkStandardKey(sharedKey)
  const sealed = sharedKey !== undefined || keys === null ? [] : [keys.current, ...(keys.next === null ? [] : [keys.next.sealed])]
  const opened = await Promise.all(sealed.map((text) => vault.open(text, endpoint.id)))
  if (opened.some((key) => key !== null && !isStandardKey(key)))
    throw wrongInput(
      'body',
      'signature',
      `signature standard-webhooks needs another key: give a sharedKey with it, which ${STANDARD_KEY_RULE}.`,
    )
}

/** Messages for malformed URLs; other refusals come from the settings. */
const MALFORMED: Readonly<Record<string, string>> = {
  malformed: 'url must be a complete URL such as https://shop.internal/parcel-events.',
  scheme: 'url must begin with http:// or https://.',
  userinfo: 'url must not contain a user name or password.',
}

function describeRefusal(reason: string): string {
  return (
    MALFORMED[reason] ?? `url leads to an address that may not be sent to (${reason.replaceAll('_', ' ')}): see delivery.allowNetworks.`
  )
}
