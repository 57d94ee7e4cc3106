import { setTimeout as pause } from 'node:timers/promises'
import { Command } from 'commander'
import { counted, countText } from '../../domain/amounts.ts'
import {
  type AskRelay,
  addRelayOptions,
  type ClientOptions,
  describeProblem,
  listOf,
  memberOf,
  openRelay,
  textOf,
  typedIdentifierText,
} from '../asking/ask-relay.ts'
import { createProgressLine } from '../asking/progress-line.ts'
import { fail } from '../exit-codes.ts'

interface RebuildOptions extends ClientOptions {
  readonly dryRun?: boolean
}

const LOOK_EVERY_MS = 500

/** `rebuild`: makes a running relay derive histories again from the stored bytes of pushes and answers. */
export function rebuildCommand(): Command {
  const command = new Command('rebuild')
    .description('compare histories with the bytes of their pushes and answers, and correct what differs; nothing is sent to endpoints')
    .argument('[identifiers...]', 'only these parcels')
    .option('--dry-run', 'only say what would change, with an example of each kind')
    .action(async (identifiers: readonly string[], options: RebuildOptions) => {
      const ask = await openRelay(options)
      const text = JSON.stringify(identifiers.length === 0 ? {} : { identifiers: identifiers.map(typedIdentifierText) })
      const path = `/relay/rebuild${options.dryRun === true ? '?dryRun=true' : ''}`
      const started = await ask('POST', path, { type: 'application/json', text })
      const id = textOf(started.body, 'id')
      if (started.status !== 202 || id === null) return fail(describeProblem(started))
      const cancel = () => void ask('DELETE', `/relay/jobs/${id}`).catch(() => undefined)
      process.once('SIGINT', cancel)
      const ended = await showUntilEnded(ask, id, options.dryRun === true ? 'comparing' : 'rebuilding')
      process.off('SIGINT', cancel)
      report(ended, options)
    })
  return addRelayOptions(command)
}

async function showUntilEnded(ask: AskRelay, id: string, step: string): Promise<unknown> {
  const line = createProgressLine(process.stderr)
  for (;;) {
    const job = await ask('GET', `/relay/jobs/${id}`)
    if (job.status !== 200) throw new Error(describeProblem(job))
    const progress = memberOf(job.body, 'progress')
    line.show(step, Number(memberOf(progress, 'done')), Number(memberOf(progress, 'total')), 'parcels')
    if (textOf(job.body, 'endedAt') !== null) {
      line.end()
      return job.body
    }
    await pause(LOOK_EVERY_MS)
  }
}

function report(job: unknown, { json, dryRun }: RebuildOptions): void {
  const state = textOf(job, 'state')
  if (json === true) process.stdout.write(`${JSON.stringify(job)}\n`)
  else process.stdout.write(describe(memberOf(job, 'report'), dryRun === true))
  if (state === 'cancelled') fail('cancelled: the corrections made so far stay')
  else if (state !== 'done') fail(textOf(job, 'failure') ?? `the job ended as ${state}`)
}

/** The wording of each count of the report, for one parcel and for several. */
const COUNTS: readonly (readonly [name: string, one: string, many: string])[] = [
  ['fromSightings', 'has lost bytes and was compared with its sightings', 'have lost bytes and were compared with their sightings'],
  ['damaged', 'has bytes that do not match their digests', 'have bytes that do not match their digests'],
  ['conflicts', 'names an identifier that another parcel has', 'name an identifier that another parcel has'],
  ['left', 'could not be compared; the log says why', 'could not be compared; the log says why'],
]

function describe(found: unknown, isDry: boolean): string {
  const count = (name: string) => Number(memberOf(found, name) ?? 0)
  const isEqual = count('differing') === 0
  const of = (name: string, one: string, many: string) => counted(count(name), one, many)
  const corrected = isDry ? '' : `; ${count('differing') === 1 ? 'it is' : 'they are'} corrected`
  const differing = `${of('differing', 'differs', 'differ')}, ${countText(count('histories'))} of them in the history that apps get${corrected}`
  const lines = [
    `${of('parcels', 'parcel', 'parcels')} compared: ${isEqual ? 'nothing differs' : differing}`,
    ...COUNTS.filter(([name]) => count(name) > 0).map((fact) => of(...fact)),
    ...listOf(found, 'examples').map((example) => describeExample(example, memberOf(found, 'changes'))),
    `stored   ${textOf(found, 'stored') ?? ''}`,
    `derived  ${textOf(found, 'derived') ?? ''}`,
  ]
  return `${lines.join('\n')}\n`
}

const KINDS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  entry: ['entry that is missing', 'entries that are missing'],
  update: ['entry that differs', 'entries that differ'],
  united: ['entry that was several', 'entries that were several'],
  split: ['entry that was part of another', 'entries that were part of another'],
  removed: ['entry that no push or answer contains', 'entries that no push or answer contains'],
  parcel: ['parcel that differs as a whole', 'parcels that differ as a whole'],
}

function describeExample(example: unknown, changes: unknown): string {
  const kind = textOf(example, 'kind') ?? ''
  const entry = memberOf(example, 'entry')
  const members = listOf(example, 'members').join(', ')
  const where = [textOf(example, 'identifier') ?? 'a parcel that is gone', ...(typeof entry === 'number' ? [`entry ${entry}`] : [])].join(
    ', ',
  )
  const [one, many] = KINDS[kind] ?? [kind, kind]
  return `${counted(Number(memberOf(changes, kind)), one, many)}, such as ${where}${members === '' ? '' : ` (${members})`}`
}
