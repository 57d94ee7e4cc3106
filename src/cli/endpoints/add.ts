import { Command } from 'commander'
import { FILTERS, SETTINGS } from '../../domain/delivery/settings-table.ts'
import { addRelayOptions, type ClientOptions, describeProblem, listOf, openRelay, textOf } from '../asking/ask-relay.ts'
import { fail } from '../exit-codes.ts'
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
      const text = JSON.stringify({ name, url, from: options.from, enabled: options.disabled === true ? false : undefined, ...given })
      const answer = await ask('POST', '/relay/endpoints', { type: 'application/json', text })
      if (answer.status !== 201) return fail(describeProblem(answer))
      if (options.json === true) return void process.stdout.write(`${JSON.stringify(answer.body)}\n`)
      for (const warning of listOf(answer.body, 'warnings')) process.stderr.write(`warning: ${String(warning)}\n`)
      process.stdout.write(`${name} is added as number ${textOf(answer.body, 'id') ?? ''}. Try it: parcel-relay endpoints test ${name}\n`)
      printKey(answer.body, key)
    })
  return addRelayOptions(addKeyOptions(addSettingOptions(command)))
}
