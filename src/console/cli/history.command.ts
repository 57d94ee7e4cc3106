import { Command } from 'commander'
import type { ParcelAnswer, RefreshedAnswer } from '../parcels/parcels.routes.ts'
import {
  type AskRelay,
  asking,
  type ClientOptions,
  describeParcelProblem,
  print,
  type RelayAnswer,
  typedIdentifier,
} from './asking/ask-relay.ts'
import { fail } from './exit-codes.ts'
import { plain, readTimeOption } from './terminal.ts'

export function historyCommand(): Command {
  const command = new Command('history')
    .description('show the history of a parcel, and when a push or a poll first reported each entry')
    .argument('<identifier>')
    .option(
      '--as-of <time>',
      'what the relay knew at this time, and how it would have answered an app, such as 2026-03-01T09:00:00Z, or how long ago: 2h',
      readTimeOption,
    )
    .option('--since <time>', 'marks what the relay has learnt after this time, and by which door', readTimeOption)
    .option('--language <tag>', 'the language of the answer to apps (with --as-of or --since)')
  return asking(
    command,
    async (ask, identifier: string, { asOf, since, language, ...options }: HistoryOptions) => {
      const path = `/relay/parcels/${typedIdentifier(identifier)}`
      const query = withQuery({ asOf, since, language })
      const known = await ask<ParcelAnswer>('GET', `${path}${query}`)
      // Asking the carrier would tell nothing of what was known.
      if (query !== '' && !known.ok) return fail(known.body.detail ?? `the relay answered with HTTP ${known.status}`)
      const answer = known.status === 404 ? await askCarrierFirst(ask, path) : known
      if (!answer.ok) return fail(await describeParcelProblem(ask, identifier, answer))
      print(options, answer.body, describe(answer.body, asOf !== undefined))
    },
    { adminFor: 'to ask the carrier about an unknown parcel' },
  )
}

interface HistoryOptions extends ClientOptions {
  readonly asOf?: string
  readonly since?: string
  readonly language?: string
}

function withQuery(parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value)
  return query.size === 0 ? '' : `?${query.toString()}`
}

/** Asks the carrier about an unknown identifier. Pushes name only tracking ids, so only a poll shows to which parcel a tracking number belongs. */
async function askCarrierFirst(ask: AskRelay, path: string): Promise<RelayAnswer<ParcelAnswer>> {
  const refreshed = await ask<RefreshedAnswer>('POST', `${path}/refresh`)
  if (!refreshed.ok) return refreshed
  if (refreshed.body.outcome === 'recorded') return await ask('GET', path)
  return { ok: false, status: 404, body: { detail: 'the relay does not know it, and neither does the carrier, which was asked now' } }
}

/** `isAsOf`: the answer to apps at that time is shown too. */
function describe({ identifiers, order, cadence, history, known }: ParcelAnswer, isAsOf: boolean): string {
  const names = identifiers.map(({ value, kind }) => `${value} (${kind})`)
  const next = cadence.nextCheckAt ?? `never: ${cadence.stopped ?? 'not watched'}`
  const because = cadence.nextCheckBecause === null ? '' : ` (${cadence.nextCheckBecause})`
  const entries = history.map(({ eventTimestamp, status, detailedStatus, location, ...entry }) => {
    const doors = [`${entry.learntBy} ${entry.learntAt ?? ''}`, `${entry.confirmedBy ?? ''} ${entry.confirmedAt ?? ''}`].map((door) =>
      door.trim(),
    )
    const words = [eventTimestamp, status, detailedStatus, location].join('  ').trimEnd()
    const news = entry.news === null || entry.news === undefined ? '' : `  ${entry.news.kind} by ${entry.news.doors.join(' and ')}`
    return `${words}  [${doors.filter((door) => door !== '').join(', ')}]${news}`
  })
  if (known !== undefined) return `${[names.join(', '), ...describeKnown(known, isAsOf), ...entries].join('\n')}\n`
  return `${[names.join(', '), ...describeOrder(order), `next check ${next}${because}`, ...entries].join('\n')}\n`
}

function describeKnown({ asOf, knownFrom, approximate, answer }: NonNullable<ParcelAnswer['known']>, isAsOf: boolean): readonly string[] {
  return [
    `as known at ${asOf}${knownFrom === null ? '' : ` (known from ${knownFrom} on)`}`,
    ...approximate.map(({ detail }) => `approximate: ${detail}`),
    ...(isAsOf ? [`an app would have got (${answer.language}) ${plain(answer.latest ?? 'a 404: no status was known')}`] : []),
  ]
}

function describeOrder({ reference, labels, note }: ParcelAnswer['order']): readonly string[] {
  const given = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  const said = [...(reference === null ? [] : [reference]), ...given]
  return [...(said.length === 0 ? [] : [`order ${said.map(plain).join('  ')}`]), ...(note === null ? [] : [`note ${plain(note)}`])]
}
