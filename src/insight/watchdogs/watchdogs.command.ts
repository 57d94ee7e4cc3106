import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { type AskRelay, asking, type ClientOptions, order } from '../../console/cli/asking/ask-relay.ts'
import { addLimitOption, type LimitOptions, listUpTo, printList } from '../../console/cli/asking/lists.ts'
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
    .alias('stalled')
    .description('list the rules, and the parcels that they find stalled')
    .option('--rule <name>', 'only those that this rule finds')
    .option('--parcel <identifier>', 'only this parcel')
    .option('--reference <number>', 'only the parcels of the order with this number')
    .option('--ended', 'also what is over')
  return asking(addLimitOption(command), async (ask, { rule, parcel, reference, ended, limit, ...options }: ListOptions) => {
    if (parcel !== undefined && parseIdentifier(parcel) === null)
      return failUsage(`watchdogs: --parcel: ${describeBadIdentifier(parcel)} --reference takes the number of an order.`)
    const list = { path: '/relay/watchdogs/breaches', name: 'breaches' }
    const filter = { rule, parcel, reference }
    const present = async (breaches: readonly BreachAnswer[]) => {
      const view = await order<WatchdogsAnswer>(ask, 'GET', '/relay/watchdogs')
      const shown = breaches.length > 0 ? presentBreaches(breaches) : `No parcel is stalled.${await overNote()}\n`
      const isOfAll = Object.values(filter).every((value) => value === undefined)
      return isOfAll ? `${presentRules(view)}\n${shown}` : `${shown}${waitNote(view)}`
    }
    /** Who asks about an order later, when all is over, must not take it for one that never was late. */
    const overNote = async () => {
      if (ended === true) return ''
      const { items } = await listUpTo<BreachAnswer>(ask, { ...list, limit: 1, query: filter })
      return items.length === 0 ? '' : ' What was and is over: --ended.'
    }
    const query = { ...filter, open: ended === true ? undefined : 'true' }
    await printList<BreachAnswer>(ask, { ...list, limit, query }, options, present)
  })
}

const NO_RULES = 'The config has no rules: see watchdogs in docs/configuration.md.\n'

function presentRules(view: WatchdogsAnswer): string {
  if (view.watchdogs.length === 0) return NO_RULES
  const rules = table(
    ['rule', 'stalled', 'in effect for'],
    view.watchdogs.map(({ name, open, loadedAt }) => [name, String(open), loadedAt === null ? 'not yet' : age(loadedAt)]),
  )
  return `${rules}${waitNote(view)}`
}

/** Says why something may not be told yet. */
function waitNote({ watchdogs, waiting, heldSince }: WatchdogsAnswer): string {
  if (watchdogs.length === 0) return NO_RULES
  const held = heldSince === null ? '' : ` Nothing is told for ${age(heldSince)}: neither pushes nor polls tell anything.`
  return waiting === 0 ? '' : `${counted(waiting, 'parcel waits', 'parcels wait')} for an answer of the carrier.${held}\n`
}

/** A breach that is over has lasted until then, however long ago that was. */
export function presentBreaches(breaches: readonly BreachAnswer[], nowMs = Date.now()): string {
  const hasOrders = breaches.some(({ reference }) => reference !== null)
  return table(
    [...(hasOrders ? ['order'] : []), 'parcel', 'rule', 'why', 'stalled for', 'checked', 'over'],
    breaches.map(({ parcel, reference, rule, why, since, checked, endedAt }) => [
      ...(hasOrders ? [plain(reference ?? '')] : []),
      parcel.identifiers[0] ?? parcel.id,
      plain(rule),
      plain(why ?? 'the rule is gone or has changed'),
      age(since, endedAt === null ? nowMs : Date.parse(endedAt)),
      checked ? 'yes' : 'no',
      endedAt === null ? '' : `${age(endedAt, nowMs)} ago`,
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
