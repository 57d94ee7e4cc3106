import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { SentForm } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { TokenKeyring } from '../../core/flow/admin/tokens/token-keyring.ts'
import type { Form } from './form.ts'
import type { Person } from './session.ts'

/** The hidden field with the id of the form. */
const FORM_ID = 'form'

/** Gives every form an id of its own, which is valid for one person and one address only. */
export interface FormIds {
  /** Adds an id to each form of a page. */
  addTo(page: string, person: Person): string
  /** Reads the id of a form that a person has sent to `path`. Null: it has none. Throws `stale_form` if this relay did not make the id for them. */
  read(form: Form, person: Person, path: string): Promise<SentForm | null>
}

/** The tag of each form that changes something, as the pages write it. Escaped text cannot contain a tag. */
const FORM_TAG = /<form\b[^>]* method="post" action="([^"]*)"[^>]*>/g

/** `keyring`: the keys of tokens, which all replicas have. */
export function createFormIds(keyring: Pick<TokenKeyring, 'current' | 'seek'>): FormIds {
  return {
    addTo: (page, person) =>
      page.replace(FORM_TAG, (tag, path: string) => {
        const { name, key } = keyring.current()
        const random = randomBytes(12).toString('base64url')
        const value = `${random}.${name}.${markOf(key, ['form', random, ...namesOf(person), path])}`
        return `${tag}<input type="hidden" name="${FORM_ID}" value="${value}">`
      }),
    async read(form, person, path) {
      const sent = form.get(FORM_ID)
      if (sent === '') return null
      const [id = '', name = '', mark = ''] = sent.split('.')
      const found = await keyring.seek(name)
      if (found === null || !isEqual(mark, markOf(found.key, ['form', id, ...namesOf(person), path]))) throw stale()
      const fields = form.entries().filter(([field]) => field !== FORM_ID)
      const file = form.file === null ? null : [form.file.name, createHash('sha256').update(form.file.bytes).digest('base64url')]
      return { id, fields: markOf(found.key, ['fields', fields, file]) }
    },
  }
}

function namesOf({ isFromProxy, name }: Person): readonly string[] {
  return [isFromProxy ? 'person' : 'app', name]
}

function markOf(key: Uint8Array, parts: readonly unknown[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
}

function isEqual(sent: string, mark: string): boolean {
  const [a, b] = [Buffer.from(sent), Buffer.from(mark)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function stale(): AppError {
  return new AppError(
    'stale_form',
    'This form was made for another person or page, or before the relay’s keys were replaced. Nothing was done. Load the page again.',
  )
}
