import { counted } from '../amounts.ts'
import type { RefusedPushes } from '../ingest/refused-pushes.ts'

type Spell = Omit<RefusedPushes, 'cause'>

/** How many requests came in a spell, and when: `355 requests from TIME until TIME`. */
export function spellText({ count, fromMs, untilMs }: Spell): string {
  const when = fromMs === untilMs ? `at ${timeText(fromMs)}` : `from ${timeText(fromMs)} until ${timeText(untilMs)}`
  return `${counted(count, 'request', 'requests')} ${when}`
}

/** Several spells as one, with the pauses between them. */
export function wholeSpell(spells: readonly Spell[]): Spell {
  return {
    count: spells.reduce((sum, { count }) => sum + count, 0),
    fromMs: Math.min(...spells.map(({ fromMs }) => fromMs)),
    untilMs: Math.max(...spells.map(({ untilMs }) => untilMs)),
  }
}

function timeText(atMs: number): string {
  return new Date(atMs).toISOString()
}
