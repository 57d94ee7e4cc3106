import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import { html, type Markup, type Part } from './html.ts'
import { type StateKind, stateMark, table } from './parts.ts'
import { timeInTable } from './times.ts'

/** What an operator event tells, as a sentence without its end. `detail`: its members, of which any may be missing in events of other versions. */
interface Wording {
  readonly kind: StateKind
  readonly word: string
  readonly tell: (detail: (name: string) => string) => Part
}

const WORDINGS: Readonly<Record<string, Wording>> = {
  endpoint_failing: {
    kind: 'bad',
    word: 'failing',
    tell: (of) => html`<strong>${of('endpoint')}</strong> fails every attempt since ${of('since')}`,
  },
  endpoint_recovered: { kind: 'ok', word: 'recovered', tell: (of) => html`<strong>${of('endpoint')}</strong> accepts events again` },
  endpoint_disabled: {
    kind: 'off',
    word: 'disabled',
    tell: (of) => html`<strong>${of('endpoint')}</strong> was disabled: ${of('because')}`,
  },
  endpoint_removed: {
    kind: 'off',
    word: 'removed',
    tell: (of) => html`<strong>${of('endpoint')}</strong> was removed: no config names it any more`,
  },
  credentials_refused: { kind: 'bad', word: 'refused', tell: () => 'The carrier refuses our password' },
  credentials_accepted: { kind: 'ok', word: 'accepted', tell: () => 'The carrier accepts our password again' },
  carrier_failing: { kind: 'bad', word: 'failing', tell: (of) => html`The carrier fails: ${of('reason').replaceAll('_', ' ')}` },
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
    tell: (of) => html`${of('count')} pushes were not understood: ${of('reason').replaceAll('_', ' ')}`,
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
    tell: (of) => html`The certificate of ${of('listener')} expires at ${of('expiresAt')}`,
  },
  job_ended: { kind: 'ok', word: 'ended', tell: (of) => html`The job ${of('job')} ended: ${of('state')}` },
}

/** What happened, the newest first. */
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
      return [timeInTable(atMs, nowMs), tell((name) => textOf(detail[name])), stateMark(kind, word)]
    }),
  })
}

/** A member of an event as text: what has a name is told by it, a list by its items. */
function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value !== 'object' || value === null) return ''
  const members = new Map<string, unknown>(Object.entries(value))
  return members.has('name') ? textOf(members.get('name')) : `${textOf(members.get('kind'))} ${textOf(members.get('id'))}`.trim()
}
