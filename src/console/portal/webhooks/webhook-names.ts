import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import type { ManageEndpoints } from '../../../core/flow/delivery/manage-endpoints.ts'
import { html, type Markup, markup } from '../html.ts'

/** A choice of a form: the id and name of a webhook. */
export interface WebhookName {
  readonly id: string
  readonly name: string
  /** Absent: it was removed. */
  readonly origin?: EndpointState['origin']
}

/** A form offers at most this many webhooks. */
const OFFERED_MAX = 1000

/** Returns webhooks sorted by name, at most `OFFERED_MAX`. */
export async function namesOfWebhooks({ states }: Pick<ManageEndpoints, 'states'>): Promise<readonly WebhookName[]> {
  const names = (await states()).map(({ endpoint: { id, name }, origin }) => ({ id, name, origin }))
  return names.toSorted((a, b) => a.name.localeCompare(b.name, 'en')).slice(0, OFFERED_MAX)
}

export function options(choices: readonly (readonly [value: string, text: string])[], chosen: string): Markup {
  return html`${choices.map(([value, text]) => html`<option value="${value}"${value === chosen ? SELECTED : null}>${text}</option>`)}`
}

const SELECTED = markup(' selected')
