import type { AskRelay } from '../../console/cli/asking/ask-relay.ts'
import { everyEndpoint } from '../../console/cli/asking/lists.ts'
import type { Config } from '../../core/config/config.ts'
import { fingerprintKey } from '../../core/domain/delivery/endpoint-keys.ts'
import type { InspectedEndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import { type CheckLine, ok, warning } from './check.rules.ts'

/** At most this many endpoints are compared, because each takes a request to the relay. */
const COMPARED_MAX = 200

/**
 * Compares the endpoints' keys in a config file with the keys of a running relay, by fingerprint. Two keys differ if the file was changed after
 * the relay read it, or if an environment variable has another value in this shell.
 */
export async function compareKeys(ask: AskRelay, { endpoints }: Pick<Config, 'endpoints'>): Promise<readonly CheckLine[]> {
  if (endpoints.length === 0) return []
  const standing = (await everyEndpoint(ask)).filter(({ origin }) => origin === 'config')
  const idOf = new Map(standing.map(({ name, id }) => [name, id]))
  const lines: CheckLine[] = []
  const compared = endpoints.filter(({ name }) => idOf.has(name)).slice(0, COMPARED_MAX)
  for (const { name, sharedKey } of compared) {
    const shown = await ask<InspectedEndpointAnswer>('GET', `/relay/endpoints/${idOf.get(name)}`)
    const running = shown.ok ? shown.body.keyFingerprint : null
    const written = fingerprintKey(sharedKey.reveal())
    if (running === null || running === written) continue
    const how = sharedKey.from !== null && 'env' in sharedKey.from ? 'restart the relay with the new value' : 'run "parcel-relay reload"'
    const message = `The file has another key (fingerprint ${written}) than the running relay (${running}). If the file is right, ${how}.`
    lines.push({ name: 'keys', subject: `endpoints.${name}`, ...warning(message) })
  }
  if (compared.length === 0 || lines.length > 0) return lines
  return [{ name: 'keys', subject: 'endpoints', ...ok('The running relay has the keys of the file.') }]
}
