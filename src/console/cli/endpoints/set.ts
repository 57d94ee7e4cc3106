import { Command } from 'commander'
import { FILTERS, SETTINGS } from '../../../core/domain/delivery/endpoint-settings.ts'
import type { InspectedEndpointAnswer, KeyedEndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import { addRelayOptions, type ClientOptions, openRelay, order } from '../asking/ask-relay.ts'
import { failUsage } from '../exit-codes.ts'
import { findEndpoint } from './find-endpoint.ts'
import { presentEndpoint } from './present-endpoint.ts'
import { addOptionsWithout, addSettingOptions, defined, each, headersIn, type SettingOptions, settingsIn } from './setting-options.ts'

interface SetOptions extends ClientOptions, SettingOptions {
  readonly name?: string
  readonly to?: string
  readonly removeHeader?: readonly string[]
}

/** `endpoints set`: changes the settings that are named, and no others. */
export function setCommand(): Command {
  const command = new Command('set')
    .description('change its URL, filters or other settings; what is not named stays as it is')
    .argument('<endpoint>', 'its name or id')
    .option('--to <url>', 'where to push')
    .option('--name <name>', 'what to call it')
  addOptionsWithout(addSettingOptions(command))
    .option('--remove-header <name>', 'no longer send this header; may be repeated', each)
    .action(act)
  return addRelayOptions(command)
}

async function act(nameOrId: string, options: SetOptions): Promise<void> {
  const [filters, change] = [settingsIn(FILTERS, options), changeIn(options)]
  const hasFilters = Object.keys(filters).length > 0
  if (!hasFilters && Object.keys(change).length === 0)
    return failUsage('endpoints set: name what to change, such as --to or --status (see --help)')
  const ask = await openRelay(options)
  const endpoint = await findEndpoint(ask, nameOrId)
  const { id } = endpoint
  // The API takes the filters as a whole, so those that are not named are sent as they are.
  const wanted = { ...change, ...(hasFilters ? { filters: { ...endpoint.filters, ...filters } } : {}) }
  const changed = await order<KeyedEndpointAnswer>(ask, 'PATCH', `/relay/endpoints/${id}`, wanted)
  for (const warning of changed.warnings ?? []) process.stderr.write(`warning: ${warning}\n`)
  if (options.json === true) return void process.stdout.write(`${JSON.stringify(changed)}\n`)
  // The answer to a change lacks the fingerprint of the key.
  process.stdout.write(presentEndpoint(await order<InspectedEndpointAnswer>(ask, 'GET', `/relay/endpoints/${id}`)))
}

/** Returns what the user gave, except filters. A header that is null is removed. */
function changeIn(options: SetOptions): object {
  const { name, to, removeHeader = [] } = options
  const headers = { ...headersIn(options).headers, ...Object.fromEntries(removeHeader.map((header) => [header, null])) }
  return { ...defined({ name, url: to, ...settingsIn(SETTINGS, options) }), ...(Object.keys(headers).length === 0 ? {} : { headers }) }
}
