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
import { plain } from './terminal.ts'

export function historyCommand(): Command {
  const command = new Command('history')
    .description('show the history of a parcel, and when a push or a poll first reported each entry')
    .argument('<identifier>')
  return asking(command, async (ask, identifier: string, options: ClientOptions) => {
    const path = `/relay/parcels/${typedIdentifier(identifier)}`
    const known = await ask<ParcelAnswer>('GET', path)
    const answer = known.status === 404 ? await askCarrierFirst(ask, path) : known
    if (!answer.ok) return fail(await describeParcelProblem(ask, identifier, answer))
    print(options, answer.body, describe(answer.body))
  })
}

/** Asks the carrier about an unknown identifier. Pushes name only tracking ids, so only a poll shows to which parcel a tracking number belongs. */
async function askCarrierFirst(ask: AskRelay, path: string): Promise<RelayAnswer<ParcelAnswer>> {
  const refreshed = await ask<RefreshedAnswer>('POST', `${path}/refresh`)
  if (!refreshed.ok) return refreshed
  if (refreshed.body.outcome === 'recorded') return await ask('GET', path)
  return { ok: false, status: 404, body: { detail: 'the relay does not know it, and neither does the carrier, which was asked now' } }
}

function describe({ identifiers, order, cadence, history }: ParcelAnswer): string {
  const names = identifiers.map(({ value, kind }) => `${value} (${kind})`)
  const next = cadence.nextCheckAt ?? `never: ${cadence.stopped ?? 'not watched'}`
  const because = cadence.nextCheckBecause === null ? '' : ` (${cadence.nextCheckBecause})`
  const entries = history.map(({ eventTimestamp, status, detailedStatus, location, ...entry }) => {
    const doors = [`${entry.learntBy} ${entry.learntAt ?? ''}`, `${entry.confirmedBy ?? ''} ${entry.confirmedAt ?? ''}`].map((door) =>
      door.trim(),
    )
    const words = [eventTimestamp, status, detailedStatus, location].join('  ').trimEnd()
    return `${words}  [${doors.filter((door) => door !== '').join(', ')}]`
  })
  return `${[names.join(', '), ...describeOrder(order), `next check ${next}${because}`, ...entries].join('\n')}\n`
}

function describeOrder({ reference, labels, note }: ParcelAnswer['order']): readonly string[] {
  const given = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  const said = [...(reference === null ? [] : [reference]), ...given]
  return [...(said.length === 0 ? [] : [`order ${said.map(plain).join('  ')}`]), ...(note === null ? [] : [`note ${plain(note)}`])]
}
