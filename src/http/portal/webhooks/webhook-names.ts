import type { ManageEndpoints } from '../../../flow/delivery/manage-endpoints.ts'
import { html, type Markup, markup } from '../html.ts'

/** A webhook with the name that forms show. */
export interface WebhookName {
  readonly id: string
  readonly name: string
}

/** A form offers at most this many webhooks. */
const OFFERED_MAX = 1000

/** All webhooks, by name. */
export async function namesOfWebhooks({ states }: Pick<ManageEndpoints, 'states'>): Promise<readonly WebhookName[]> {
  const names = (await states()).map(({ endpoint: { id, name } }) => ({ id, name }))
  return names.toSorted((a, b) => a.name.localeCompare(b.name, 'en')).slice(0, OFFERED_MAX)
}

/** Values to choose from, for a `select`. */
export function options(choices: readonly (readonly [value: string, text: string])[], chosen: string): Markup {
  return html`${choices.map(([value, text]) => html`<option value="${value}"${value === chosen ? SELECTED : null}>${text}</option>`)}`
}

const SELECTED = markup(' selected')
