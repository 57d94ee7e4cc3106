import { counted } from '../../domain/amounts.ts'
import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import { failureText } from './carrier/carrier-words.ts'
import { html, type Markup, type Part } from './html.ts'
import { reasonInTable } from './inbox/quarantine-words.ts'
import { type StateKind, stateMark, table } from './parts.ts'
import { timeInSentence, timeInTable } from './times.ts'

/**
 * Words an operator event as a sentence without its full stop. Events of other versions may lack any member. `of` reads a member as text,
 * `at` reads one as a time.
 */
interface Wording {
  readonly kind: StateKind
  readonly word: string
  readonly tell: (of: (name: string) => string, at: (name: string) => Part) => Part
}

const DISABLED_BECAUSE: ReadonlyMap<string, string> = new Map([
  ['gone', 'answered 410 Gone and was disabled'],
  ['failing', 'failed for 120 h and was disabled'],
  ['unnamed', 'is named by no config any more and was disabled'],
])

const WORDINGS: Readonly<Record<string, Wording>> = {
  endpoint_failing: {
    kind: 'bad',
    word: 'failing',
    tell: (of, at) => html`<strong>${of('endpoint')}</strong> has failed every attempt since ${at('since')}`,
  },
  endpoint_recovered: { kind: 'ok', word: 'recovered', tell: (of) => html`<strong>${of('endpoint')}</strong> accepts events again` },
  endpoint_disabled: {
    kind: 'off',
    word: 'disabled',
    tell: (of) => html`<strong>${of('endpoint')}</strong> ${DISABLED_BECAUSE.get(of('because')) ?? `was disabled: ${of('because')}`}`,
  },
  endpoint_removed: {
    kind: 'off',
    word: 'removed',
    tell: (of) => html`<strong>${of('endpoint')}</strong> was removed: no config names it any more`,
  },
  credentials_refused: { kind: 'bad', word: 'refused', tell: () => 'The carrier refuses our password' },
  credentials_accepted: { kind: 'ok', word: 'accepted', tell: () => 'The carrier accepts our password again' },
  carrier_failing: { kind: 'bad', word: 'failing', tell: (of) => html`The carrier fails: ${failureText(of('reason'))}` },
  carrier_recovered: { kind: 'ok', word: 'recovered', tell: () => 'The carrier answers again' },
  pushes_silent: {
    kind: 'bad',
    word: 'silent',
    tell: () => 'No pushes arrive although the carrier scans: polls go back to their full rate',
  },
  pushes_lossy: { kind: 'warn', word: 'lossy', tell: () => 'Pushes arrive, and too many are lost' },
  pushes_trusted: { kind: 'ok', word: 'trusted', tell: () => 'Pushes arrive again, and few are lost' },
  pushes_quarantined: {
    kind: 'warn',
    word: 'quarantined',
    tell: (of) => html`${counted(Number(of('count')), 'push was', 'pushes were')} not understood: ${reasonInTable(of('reason'))}`,
  },
  disk_low: { kind: 'warn', word: 'disk low', tell: () => 'The store’s disk is nearly full' },
  disk_recovered: { kind: 'ok', word: 'recovered', tell: () => 'The store’s disk has room again' },
  reloaded: {
    kind: 'ok',
    word: 'reloaded',
    tell: (of) => html`The config was reloaded: ${of('changed') === '' ? 'nothing changed' : `${of('changed')} changed`}`,
  },
  reload_failed: { kind: 'warn', word: 'not reloaded', tell: (of) => html`The config could not be reloaded: ${of('problems')}` },
  certificate_expiring: {
    kind: 'warn',
    word: 'expiring',
    tell: (of, at) => html`The certificate of ${of('listener')} expires at ${at('expiresAt')}`,
  },
  store_restored: {
    kind: 'warn',
    word: 'restored',
    tell: (of, at) =>
      html`The store was restored from the backup ${of('backup')} of ${at('madeAt')}: sequences go on after ${of('nextSequence')}`,
  },
  backup_failed: { kind: 'warn', word: 'failed', tell: (of) => html`The backup ${of('backup')} could not be made: ${of('reason')}` },
  backup_recovered: { kind: 'ok', word: 'recovered', tell: (of) => html`Backups are made again: ${of('backup')}` },
  retention_held: {
    kind: 'warn',
    word: 'held back',
    tell: (_of, at) =>
      html`Data that is past its time has been held back since ${at('since')}: it is undelivered, in quarantine or still needed`,
  },
  retention_gave_up: {
    kind: 'bad',
    word: 'given up',
    tell: () => 'Data was given up that had been undelivered, in quarantine or needed for as long as retention.held',
  },
  job_ended: { kind: 'ok', word: 'ended', tell: (of) => html`The job ${of('job')} ended: ${of('state')}` },
}

/** The events, the newest first. */
export function eventTable(events: readonly ToldEvent[], nowMs: number): Markup {
  if (events.length === 0) return html`<p class="dim">Nothing has happened that changed a state.</p>`
  return table({
    label: 'What happened',
    columns: [{ title: 'When', isTime: true }, { title: 'What' }, { title: 'State' }],
    rows: events.map(({ atMs, event, detail }) => {
      const { kind, word, tell } = WORDINGS[event] ?? {
        kind: 'none',
        word: event.replaceAll('_', ' '),
        tell: () => event.replaceAll('_', ' '),
      }
      const of = (name: string) => textOf(detail[name])
      const at = (name: string) => (Number.isNaN(Date.parse(of(name))) ? of(name) : timeInSentence(Date.parse(of(name)), nowMs))
      return [timeInTable(atMs, nowMs), tell(of, at), stateMark(kind, word)]
    }),
  })
}

/** A member of an event as text: an object by its name, a list by its items. */
function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value !== 'object' || value === null) return ''
  const members = new Map<string, unknown>(Object.entries(value))
  return members.has('name') ? textOf(members.get('name')) : `${textOf(members.get('kind'))} ${textOf(members.get('id'))}`.trim()
}
