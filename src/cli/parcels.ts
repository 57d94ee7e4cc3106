import { Command, Option } from 'commander'
import { counted } from '../domain/amounts.ts'
import { STOPPED_REASONS } from '../flow/admin/parcels/parcel-queries.ts'
import { addRelayOptions, type ClientOptions, listOf, memberOf, openRelay, textOf } from './asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, listUpTo, sayWhetherMore } from './asking/paged-list.ts'
import { age, until } from './terminal/ages.ts'
import { plain, table } from './terminal/table.ts'

interface ParcelsOptions extends ClientOptions, LimitOptions {
  readonly status?: string
  readonly stopped?: string
  readonly unknown?: boolean
}

export function parcelsCommand(): Command {
  const command = new Command('parcels')
    .description('list parcels: their status, and when the carrier is asked next; `history` shows one of them')
    .argument('[beginning]', 'only those with an identifier that begins like this')
    .option('--status <status>', 'only those whose latest status is this')
    .addOption(new Option('--stopped <reason>', 'only parcels that are no longer polled, for this reason').choices(STOPPED_REASONS))
    .option('--unknown', 'only parcels that the carrier did not know when it was last asked, still polled or not')
    .action(async (beginning: string | undefined, { status, stopped, unknown, limit, ...options }: ParcelsOptions) => {
      const ask = await openRelay(options)
      const query = { query: beginning, status, stopped, unknown: unknown === true ? 'true' : undefined }
      const listed = await listUpTo(ask, { path: '/relay/parcels', name: 'parcels', limit, query })
      if (options.json === true) return void process.stdout.write(`${JSON.stringify({ parcels: listed.items, next: listed.next })}\n`)
      process.stdout.write(listed.items.length === 0 ? describeNone(beginning) : present(listed.items))
      sayWhichLackNumbers(listed.items)
      sayWhetherMore(listed)
    })
  return addRelayOptions(addLimitOption(command))
}

/** Says that no parcel was found. The parcel may exist, while the relay does not know its number yet. */
function describeNone(beginning: string | undefined): string {
  if (beginning === undefined) return 'No parcel matches.\n'
  return `No such parcel has a known identifier that begins with ${plain(beginning)}.
If a push has brought its tracking id only, the relay may not know its number yet:
"parcel-relay refresh NUMBER" asks the carrier, and ties the number to its parcel.
`
}

const UNKNOWN_NUMBER = 'not known yet'

/** Says on standard error how many listed parcels have no tracking number. Somebody who looks for a number of the carrier may miss these parcels. */
function sayWhichLackNumbers(parcels: readonly unknown[]): void {
  const nameless = parcels.filter((parcel) => listOf(parcel, 'trackingNumbers').length === 0).length
  if (nameless === 0) return
  process.stderr.write(
    `The tracking number of ${counted(nameless, 'parcel', 'parcels')} is not known, because pushes contain only tracking ids. If you have the numbers,\n"parcel-relay watch --file FILE" polls them and finds their parcels.\n`,
  )
}

/** Returns the first identifier, and how many more there are, such as `AB123456789SE +2`; null: there is none. */
function firstOf(identifiers: readonly unknown[]): string | null {
  const [first, ...more] = identifiers
  return typeof first === 'string' ? `${first}${more.length === 0 ? '' : ` +${more.length}`}` : null
}

function present(parcels: readonly unknown[]): string {
  return table(
    ['tracking number', 'tracking id', 'status', 'last seen', 'next check'],
    parcels.map((parcel) => {
      const cadence = memberOf(parcel, 'cadence')
      const numbers = listOf(parcel, 'trackingNumbers')
      const next = textOf(cadence, 'nextCheckAt')
      const seen = age(textOf(cadence, 'heardAt'))
      return [
        firstOf(numbers) ?? UNKNOWN_NUMBER,
        firstOf(listOf(parcel, 'identifiers').filter((one) => !numbers.includes(one))) ?? '',
        textOf(parcel, 'status') ?? '',
        seen === '' ? 'never' : `${seen} ago`,
        next === null ? (textOf(cadence, 'stopped') ?? 'not watched') : until(next),
      ]
    }),
  )
}
