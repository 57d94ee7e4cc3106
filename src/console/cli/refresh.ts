import { Command } from 'commander'
import { counted } from '../../core/domain/amounts.ts'
import type { PageAnswer } from '../../core/http/server/answer-schemas.ts'
import type { ListedParcelAnswer } from '../api/parcel-answers.ts'
import type { RefreshedAnswer } from '../api/parcels.routes.ts'
import { type AskRelay, addRelayOptions, type ClientOptions, describeProblem, openRelay, typedIdentifier } from './asking/ask-relay.ts'
import { type StepEnd, takeSteps } from './asking/progress-line.ts'
import { failUsage } from './exit-codes.ts'

/** `refresh`: makes a running relay ask the carrier about parcels now. */
export function refreshCommand(): Command {
  const command = new Command('refresh')
    .description(
      'ask the carrier about parcels now, in every language; also learns which parcel a tracking number belongs to. What it finds is sent to each endpoint that had begun when it happened (docs/endpoints.md)',
    )
    .argument('[identifiers...]')
    .option('--all', 'refresh every watched parcel, most overdue first; each costs calls from the budget')
    .action(async (identifiers: readonly string[], options: ClientOptions & { readonly all?: boolean }) => {
      if ((identifiers.length === 0) !== (options.all === true)) return failUsage('refresh: name parcels, or use --all')
      const ask = await openRelay(options)
      const named = options.all === true ? await everyParcel(ask) : identifiers
      let unknown = 0
      const refresh = async (identifier: string, at: number): Promise<StepEnd> => {
        const answer = await ask<RefreshedAnswer>('POST', `/relay/parcels/${typedIdentifier(identifier)}/refresh`)
        if (!answer.ok) return { failure: `${identifier}: ${describeProblem(answer)}` }
        const { outcome } = answer.body
        unknown += outcome === 'unknown' ? 1 : 0
        const line = options.json === true ? JSON.stringify(answer.body) : `${identifier}: ${outcome} (${at + 1} of ${named.length})`
        return { outcome, line }
      }
      await takeSteps(named, refresh, { step: 'refreshing', unit: 'parcels', isForProgram: options.json === true })
      if (options.json !== true) process.stdout.write(`${aboutUnknown(unknown)}`)
    })
  return addRelayOptions(command)
}

function aboutUnknown(count: number): string {
  return count === 0
    ? ''
    : `${counted(count, 'parcel is', 'parcels are')} unknown: the carrier knows none of the identifiers that the relay has. If you have the tracking number, refresh by that.\n`
}

/** Lists all parcels before the first refresh, because a refresh changes the order of the list. */
async function everyParcel(ask: AskRelay): Promise<readonly string[]> {
  const found: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const path: string = `/relay/parcels?limit=500${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    const page = await ask<PageAnswer<'parcels', ListedParcelAnswer>>('GET', path)
    if (!page.ok) throw new Error(describeProblem(page))
    found.push(...page.body.parcels.flatMap(({ identifiers }) => identifiers.slice(0, 1)))
    cursor = page.body.next
    if (cursor?.startsWith('stopped.') === true) cursor = null
  }
  return found
}
