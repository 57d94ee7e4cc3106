import { wordFailure } from '../../../domain/delivery/failure-words.ts'
import { html, type Markup } from '../html.ts'

/** Explains a failed attempt in one sentence, and quotes the answer if there was one. */
export function explainFailure(...failure: Parameters<typeof wordFailure>): Markup {
  const { what, said, meaning } = wordFailure(...failure)
  return html`${what}${said === '' ? null : html` <q class="said">${said}</q>`}: ${meaning}`
}
