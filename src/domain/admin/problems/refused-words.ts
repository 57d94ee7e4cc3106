import { counted, countText } from '../../amounts.ts'
import type { RefusedPushes } from '../../ingest/refused-pushes.ts'

type Spell = Omit<RefusedPushes, 'cause'>

/** Says how many requests were refused in a period, and when: `355 requests from TIME until TIME, 3 times between, the last time from TIME`. */
export function spellText({ count, fromMs, untilMs, parts }: Spell): string {
  const [from, until] = [Math.floor(fromMs / 1000), Math.ceil(untilMs / 1000)]
  const when = fromMs === untilMs ? `at ${timeText(from)}` : `from ${timeText(from)} until ${timeText(until)}`
  const times =
    parts === undefined ? '' : `, ${parts.count} times between, the last time from ${timeText(Math.floor(parts.lastFromMs / 1000))}`
  return `${counted(count, 'request', 'requests')} ${when}${times}`
}

/** Joins several periods to one, from the beginning of the first to the end of the last. */
export function wholeSpell(spells: readonly Spell[]): Spell {
  return {
    count: spells.reduce((sum, { count }) => sum + count, 0),
    fromMs: Math.min(...spells.map(({ fromMs }) => fromMs)),
    untilMs: Math.max(...spells.map(({ untilMs }) => untilMs)),
  }
}

/** Says how many of the refused pushes have come again; null: no push was refused, or the number is not known for every period. */
export function comebackText(spells: readonly RefusedPushes[]): string | null {
  const comebacks = spells.flatMap(({ comeback }) => comeback ?? [])
  const pushes = comebacks.reduce((sum, one) => sum + one.pushes, 0)
  const again = comebacks.reduce((sum, one) => sum + one.again, 0)
  if (pushes === 0 || comebacks.length < spells.length) return null
  if (again >= pushes) return `${counted(pushes, 'push was', 'pushes were')} refused, and all have come again.`
  return `At most ${counted(pushes, 'different push was', 'different pushes were')} refused, and ${again === 0 ? 'none' : `at least ${countText(again)}`} ${again > 1 ? 'have' : 'has'} come again. After a restart, and at another replica, the relay does not recognize them, and counts them anew.`
}

function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
