import { Command, Option } from 'commander'
import { counted } from '../../core/domain/amounts.ts'
import { STOPPED_REASONS } from '../parcels/parcel-queries.ts'
import type { ListedParcelAnswer } from '../parcels/parcels.routes.ts'
import { asking, type ClientOptions } from './asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, printList } from './asking/lists.ts'
import { age, plain, table, until } from './terminal.ts'

interface ParcelsOptions extends ClientOptions, LimitOptions {
  readonly reference?: string
  readonly status?: string
  readonly stopped?: string
  readonly unknown?: boolean
}

export function parcelsCommand(): Command {
  const command = new Command('parcels')
    .description('list parcels: their status, and when the carrier is asked next; `history` shows one of them')
    .argument('[beginning]', 'only those with an identifier that begins like this')
    .option('--reference <number>', 'only those of the order with this number')
    .option('--status <status>', 'only those whose latest status is this')
    .addOption(new Option('--stopped <reason>', 'only parcels that are no longer polled, for this reason').choices(STOPPED_REASONS))
    .option('--unknown', 'only parcels that the carrier did not know when it was last asked, still polled or not')
  return asking(
    addLimitOption(command),
    async (ask, beginning: string | undefined, { reference, status, stopped, unknown, limit, ...options }: ParcelsOptions) => {
      const query = { query: beginning, reference, status, stopped, unknown: unknown === true ? 'true' : undefined }
      const asked = { path: '/relay/parcels', name: 'parcels', limit, query }
      const shown = (parcels: readonly ListedParcelAnswer[]) => (parcels.length === 0 ? describeNone(beginning) : present(parcels))
      await printList(ask, asked, options, shown, noteNumberless)
    },
    'status',
  )
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

/** Says how many listed parcels have no tracking number. Somebody who looks for a number of the carrier may miss these parcels. */
function noteNumberless(parcels: readonly ListedParcelAnswer[]): string {
  const count = parcels.filter(({ trackingNumbers }) => trackingNumbers.length === 0).length
  return count === 0
    ? ''
    : `The tracking number of ${counted(count, 'parcel', 'parcels')} is not known, because pushes contain only tracking ids. If you have the numbers,\n"parcel-relay watch --file FILE" polls them and finds their parcels.\n`
}

/** Returns the first identifier, and how many more there are, such as `AB123456789SE +2`; null: there is none. */
function firstOf([first, ...more]: readonly string[]): string | null {
  return first === undefined ? null : `${first}${more.length === 0 ? '' : ` +${more.length}`}`
}

/** After an outage of the carrier, this shows which parcels it has kept waiting. */
function failedPolls({ failures }: ListedParcelAnswer['cadence']): string {
  return failures > 0 ? `, after ${counted(failures, 'failed poll', 'failed polls')}` : ''
}

function nextCheck({ waitsForCarrier }: ListedParcelAnswer['cadence'], nextCheckAt: string): string {
  const when = until(nextCheckAt)
  if (!waitsForCarrier) return when
  return `when the carrier answers again${when === 'now' ? '' : `, ${when} at the earliest`}`
}

function present(parcels: readonly ListedParcelAnswer[]): string {
  const hasOrders = parcels.some(({ order }) => order.reference !== null)
  return table(
    [...(hasOrders ? ['order'] : []), 'tracking number', 'tracking id', 'status', 'last seen', 'next check'],
    parcels.map(({ identifiers, trackingNumbers, status, cadence, order }) => {
      const seen = age(cadence.heardAt)
      return [
        ...(hasOrders ? [plain(order.reference ?? '')] : []),
        firstOf(trackingNumbers) ?? UNKNOWN_NUMBER,
        firstOf(identifiers.filter((one) => !trackingNumbers.includes(one))) ?? '',
        status ?? '',
        seen === '' ? 'never' : `${seen} ago`,
        cadence.nextCheckAt === null
          ? (cadence.stopped ?? 'not watched')
          : `${nextCheck(cadence, cadence.nextCheckAt)}${failedPolls(cadence)}`,
      ]
    }),
  )
}
