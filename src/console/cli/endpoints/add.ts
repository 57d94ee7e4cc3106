import { Command } from 'commander'
import { FILTERS, SETTINGS } from '../../../core/domain/delivery/endpoint-settings.ts'
import type { KeyedEndpointAnswer } from '../../../core/http/delivery/endpoints.routes.ts'
import { addRelayOptions, type ClientOptions, openRelay, order, print } from '../asking/ask-relay.ts'
import { addSettingOptions, headersIn, type SettingOptions, settingsIn, wholeNumber } from './setting-options.ts'
import { addKeyOptions, type KeyOptions, keyIn, printKey } from './shared-key.ts'

interface AddOptions extends ClientOptions, KeyOptions, SettingOptions {
  readonly from?: number
  readonly disabled?: boolean
}

export function addCommand(): Command {
  const command = new Command('add')
    .description('push events to a URL from now on; without a key, the relay makes one and shows it once')
    .argument('<name>', 'what to call it')
    .argument('<url>', 'where to push, such as https://shop.internal/parcel-events')
    .option('--from <sequence>', 'start with this sequence of the feed instead of with what comes from now on', wholeNumber)
    .option('--disabled', 'add it, but push nothing until it is enabled')
    .action(async (name: string, url: string, options: AddOptions) => {
      const ask = await openRelay(options)
      const key = keyIn(options)
      // The relay fills in the defaults of what the user did not give.
      const given = { filters: settingsIn(FILTERS, options), ...settingsIn(SETTINGS, options), ...headersIn(options), ...key }
      const enabled = options.disabled === true ? false : undefined
      const added = await order<KeyedEndpointAnswer>(ask, 'POST', '/relay/endpoints', { name, url, from: options.from, enabled, ...given })
      if (options.json !== true) for (const warning of added.warnings ?? []) process.stderr.write(`warning: ${warning}\n`)
      print(options, added, `${name} is added as number ${added.id}. Try it: parcel-relay endpoints test ${name}\n`)
      if (options.json !== true) printKey(added, key)
    })
  return addRelayOptions(addKeyOptions(addSettingOptions(command)))
}
