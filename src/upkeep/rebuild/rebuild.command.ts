import { Command } from 'commander'
import { asking, type ClientOptions, order, typedIdentifierText } from '../../console/cli/asking/ask-relay.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { followJob, reportJob } from '../jobs/follow-job.ts'
import type { JobAnswer } from '../jobs/jobs.routes.ts'

/** `rebuild`: makes a running relay derive histories again from the stored bytes of pushes and answers. */
export function rebuildCommand(): Command {
  const command = new Command('rebuild')
    .description('compare histories with the bytes of their pushes and answers, and correct what differs; nothing is sent to endpoints')
    .argument('[identifiers...]', 'only these parcels')
    .option('--dry-run', 'only say what would change, with an example of each kind')
  return asking(command, async (ask, identifiers: readonly string[], options: ClientOptions & { readonly dryRun?: boolean }) => {
    const named = identifiers.length === 0 ? {} : { identifiers: identifiers.map(typedIdentifierText) }
    const path = `/relay/rebuild${options.dryRun === true ? '?dryRun=true' : ''}`
    const { id } = await order<JobAnswer>(ask, 'POST', path, named)
    const job = await followJob(ask, id, { whole: [options.dryRun === true ? 'comparing' : 'rebuilding', 'parcels'] })
    if (job.kind !== 'rebuild') throw new Error(`job ${id} is no rebuild`)
    if (options.json !== true) process.stdout.write(describe(job.report, options.dryRun === true))
    reportJob(job, 'cancelled: the corrections made so far stay', options)
  })
}

type Report = NonNullable<Extract<JobAnswer, { kind: 'rebuild' }>['report']>

/** The wording of each count of the report, for one parcel and for several. */
const COUNTS: readonly (readonly [name: 'fromSightings' | 'damaged' | 'conflicts' | 'left', one: string, many: string])[] = [
  ['fromSightings', 'has lost bytes and was compared with its sightings', 'have lost bytes and were compared with their sightings'],
  ['damaged', 'has bytes that do not match their digests', 'have bytes that do not match their digests'],
  ['conflicts', 'names an identifier that another parcel has', 'name an identifier that another parcel has'],
  ['left', 'could not be compared; the log says why', 'could not be compared; the log says why'],
]

function describe(found: Report | null, isDry: boolean): string {
  if (found === null) return '0 parcels compared: nothing differs\nstored   \nderived  \n'
  const { differing, histories, changes, examples, stored, derived } = found
  const corrected = isDry ? '' : `; ${differing === 1 ? 'it is' : 'they are'} corrected`
  const differ = `${counted(differing, 'differs', 'differ')}, ${countText(histories)} of them in the history that apps get${corrected}`
  const lines = [
    `${counted(found.parcels, 'parcel', 'parcels')} compared: ${differing === 0 ? 'nothing differs' : differ}`,
    ...COUNTS.filter(([name]) => found[name] > 0).map(([name, one, many]) => counted(found[name], one, many)),
    ...examples.map((example) => describeExample(example, changes)),
    `stored   ${stored}`,
    `derived  ${derived}`,
  ]
  return `${lines.join('\n')}\n`
}

const KINDS: Readonly<Record<Report['examples'][number]['kind'], readonly [one: string, many: string]>> = {
  entry: ['entry that is missing', 'entries that are missing'],
  update: ['entry that differs', 'entries that differ'],
  united: ['entry that was several', 'entries that were several'],
  split: ['entry that was part of another', 'entries that were part of another'],
  removed: ['entry that no push or answer contains', 'entries that no push or answer contains'],
  parcel: ['parcel that differs as a whole', 'parcels that differ as a whole'],
}

function describeExample({ kind, identifier, entry, members }: Report['examples'][number], changes: Report['changes']): string {
  const where = [identifier ?? 'a parcel that is gone', ...(entry === null ? [] : [`entry ${entry}`])].join(', ')
  const [one, many] = KINDS[kind]
  return `${counted(changes[kind] ?? 0, one, many)}, such as ${where}${members.length === 0 ? '' : ` (${members.join(', ')})`}`
}
