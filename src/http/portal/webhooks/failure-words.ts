import { wordFailure } from '../../../domain/delivery/failure-words.ts'
import { html, type Markup } from '../html.ts'

/** Explains a failure in one sentence, with the answer if there was one (`wordFailure`). */
export function explainFailure(...failure: Parameters<typeof wordFailure>): Markup {
  const { what, said, meaning } = wordFailure(...failure)
  return html`${what}${said === '' ? null : html` <q class="said">${said}</q>`}: ${meaning}`
}
