import { Command } from 'commander'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  listOf,
  memberOf,
  openRelay,
  type RelayAnswer,
  textOf,
  typedIdentifier,
} from './asking/ask-relay.ts'
import { describeParcelProblem } from './asking/unknown.ts'
import { fail } from './exit-codes.ts'

export function historyCommand(): Command {
  const command = new Command('history')
    .description('show the history of a parcel, and when a push or a poll first reported each entry')
    .argument('<identifier>')
    .action(async (identifier: string, options: ClientOptions) => {
      const ask = await openRelay(options)
      const path = `/relay/parcels/${typedIdentifier(identifier)}`
      const known = await ask('GET', path)
      const answer = known.status === 404 ? await askCarrierFirst(ask, path) : known
      if (answer.status !== 200) return fail(await describeParcelProblem(ask, identifier, answer))
      process.stdout.write(options.json === true ? `${JSON.stringify(answer.body)}\n` : describe(answer.body))
    })
  return addRelayOptions(command)
}

/** Asks the carrier about an unknown identifier. Pushes name only tracking ids, so only a poll shows to which parcel a tracking number belongs. */
async function askCarrierFirst(ask: AskRelay, path: string): Promise<RelayAnswer> {
  const refreshed = await ask('POST', `${path}/refresh`)
  if (refreshed.status !== 200) return refreshed
  if (textOf(refreshed.body, 'outcome') === 'recorded') return await ask('GET', path)
  return { status: 404, body: { detail: 'the relay does not know it, and neither does the carrier, which was asked now' } }
}

function describe(parcel: unknown): string {
  const names = listOf(parcel, 'identifiers').map((one) => `${textOf(one, 'value') ?? ''} (${textOf(one, 'kind') ?? ''})`)
  const cadence = memberOf(parcel, 'cadence')
  const next = textOf(cadence, 'nextCheckAt') ?? `never: ${textOf(cadence, 'stopped') ?? 'not watched'}`
  const because = textOf(cadence, 'nextCheckBecause')
  const entries = listOf(parcel, 'history').map((entry) => {
    const doors = ['learnt', 'confirmed'].map((what) => `${textOf(entry, `${what}By`) ?? ''} ${textOf(entry, `${what}At`) ?? ''}`.trim())
    const words = ['eventTimestamp', 'status', 'detailedStatus', 'location'].map((name) => textOf(entry, name) ?? '')
    return `${words.join('  ').trimEnd()}  [${doors.filter((door) => door !== '').join(', ')}]`
  })
  return `${[names.join(', '), `next check ${next}${because === null ? '' : ` (${because})`}`, ...entries].join('\n')}\n`
}
