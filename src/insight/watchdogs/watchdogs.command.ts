import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { type AskRelay, asking, type ClientOptions, describeProblem, order } from '../../console/cli/asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, printList } from '../../console/cli/asking/lists.ts'
import { failUsage } from '../../console/cli/exit-codes.ts'
import { age, createProgressLine, plain, table } from '../../console/cli/terminal.ts'
import { counted } from '../../core/domain/amounts.ts'
import { describeBadIdentifier, parseIdentifier } from '../../core/domain/identifiers.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { BreachAnswer, TriedAnswer, WatchdogsAnswer } from './watchdogs.routes.ts'
import { countsByRule, readRules } from './written-rules.ts'

/** `watchdogs`: shows which parcels rules find stalled, and what a rule would have said. */
export function watchdogsCommand(): Command {
  return new Command('watchdogs')
    .description(
      'show which parcels the rules of the config find stalled, and why, and try rules on the stored histories; "watchdogs list --help" has the options --rule, --parcel, --reference and --ended',
    )
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(tryCommand())
}

interface ListOptions extends ClientOptions, LimitOptions {
  readonly rule?: string
  readonly parcel?: string
  readonly reference?: string
  readonly ended?: boolean
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the rules, and the parcels that they find stalled')
    .option('--rule <name>', 'only those that this rule finds')
    .option('--parcel <identifier>', 'only this parcel')
    .option('--reference <number>', 'only the parcels of the order with this number')
    .option('--ended', 'also what is over')
  return asking(addLimitOption(command), async (ask, { rule, parcel, reference, ended, limit, ...options }: ListOptions) => {
    if (parcel !== undefined && parseIdentifier(parcel) === null)
      return failUsage(`watchdogs: --parcel: ${describeBadIdentifier(parcel)} --reference takes the number of an order.`)
    const view = await ask<WatchdogsAnswer>('GET', '/relay/watchdogs')
    if (!view.ok) throw new Error(describeProblem(view))
    if (options.json !== true) process.stdout.write(presentRules(view.body))
    const query = { rule, parcel, reference, open: ended === true ? undefined : 'true' }
    await printList<BreachAnswer>(ask, { path: '/relay/watchdogs/breaches', name: 'breaches', limit, query }, options, present)
  })
}

function presentRules({ watchdogs, waiting, heldSince }: WatchdogsAnswer): string {
  if (watchdogs.length === 0) return 'The config has no rules: see watchdogs in docs/configuration.md.\n'
  const rules = table(
    ['rule', 'stalled', 'in effect for'],
    watchdogs.map(({ name, open, loadedAt }) => [name, String(open), loadedAt === null ? 'not yet' : age(loadedAt)]),
  )
  const held = heldSince === null ? '' : ` Nothing is told for ${age(heldSince)}: neither pushes nor polls tell anything.`
  return `${rules}${waiting === 0 ? '' : `${counted(waiting, 'parcel waits', 'parcels wait')} for an answer of the carrier.${held}\n`}\n`
}

function present(breaches: readonly BreachAnswer[]): string {
  if (breaches.length === 0) return 'No parcel is stalled.\n'
  const hasOrders = breaches.some(({ reference }) => reference !== null)
  return table(
    [...(hasOrders ? ['order'] : []), 'parcel', 'rule', 'why', 'stalled for', 'checked', 'over'],
    breaches.map(({ parcel, reference, rule, why, since, checked, endedAt }) => [
      ...(hasOrders ? [plain(reference ?? '')] : []),
      parcel.identifiers[0] ?? parcel.id,
      plain(rule),
      plain(why ?? 'the rule is gone or has changed'),
      age(since, endedAt === null ? Date.now() : Date.parse(endedAt)),
      checked ? 'yes' : 'no',
      endedAt === null ? '' : `${age(endedAt)} ago`,
    ]),
  )
}

interface TryOptions extends ClientOptions {
  readonly since: string
}

function tryCommand(): Command {
  const command = new Command('try')
    .description('say what rules would have found in the stored histories; nothing is told or stored')
    .argument('<file>', 'a YAML file with a list of rules, or with such a list under `watchdogs`')
    .option('--since <duration>', 'only parcels that were stalled since this long ago', '30d')
  return asking(command, async (ask, file: string, options: TryOptions) => {
    const rules = rulesIn(file)
    if (rules === null) return
    const breaches = await tryAll(ask, rules, options.since)
    if (options.json === true) return void process.stdout.write(`${JSON.stringify({ breaches })}\n`)
    const counts = `${countsByRule(rules, breaches).join('\n')}\n`
    process.stdout.write(
      breaches.length === 0 ? `No parcel would have been found stalled.\n${counts}` : `${presentTried(breaches)}\n${counts}`,
    )
  })
}

/** Null: the file cannot be read, which was said. */
function rulesIn(file: string): readonly unknown[] | null {
  try {
    const written = readRules(readFileSync(file, 'utf8'))
    if (typeof written !== 'string') return written.rules
    failUsage(`watchdogs: ${file}: ${written}`)
  } catch (error) {
    failUsage(`watchdogs: ${file} cannot be read: ${describeFailure(error)}`)
  }
  return null
}

async function tryAll(ask: AskRelay, rules: readonly unknown[], since: string): Promise<TriedAnswer['breaches']> {
  const breaches: TriedAnswer['breaches'][number][] = []
  const progress = createProgressLine(process.stderr)
  let looked = 0
  for (let after: number | null = null; ; ) {
    const asked = new URLSearchParams({ since, ...(after === null ? {} : { after: String(after) }) })
    const answer = await order<TriedAnswer>(ask, 'POST', `/relay/watchdogs/try?${asked.toString()}`, rules)
    breaches.push(...answer.breaches)
    looked += answer.parcels
    after = answer.next
    if (after === null) break
    progress.show('trying', looked, 0, 'parcels')
  }
  if (looked > 0) progress.end()
  return breaches
}

function presentTried(breaches: TriedAnswer['breaches']): string {
  const rows = breaches.map(({ rule, identifiers, since, endedAt }) => [rule, identifiers[0] ?? '', since, endedAt ?? 'still'])
  return table(['rule', 'parcel', 'stalled since', 'until'], rows)
}
