import type { Context } from 'koa'
import type { Actor } from '../../domain/admin/operator-action.ts'
import type { Scope } from '../../flow/admin/tokens/authenticate.ts'
import type { Address } from './addresses.ts'
import type { Form } from './form.ts'
import type { View } from './layout.ts'
import type { Person } from './session.ts'

/** A request for a page by somebody who may see it. */
export interface Visit extends View {
  readonly person: Person
  /** The person and their address, for the audit trail. */
  readonly by: Actor
  readonly ctx: Context
  /** A variable part of the path, as raw text. */
  readonly param: (name: string) => string
  /** A parameter of the query; the empty text if it is not there. */
  readonly query: (name: string) => string
  /** The form that was sent; empty for a GET. */
  readonly form: Form
}

/**
 * A page as text, by default with status 200; an address of the portal to go to after an action; or bytes to save, under a name of ours.
 */
export type PageAnswer =
  | { readonly page: string; readonly status?: number }
  | { readonly goTo: Address }
  | { readonly file: Uint8Array; readonly name: string }

export interface PageRoute {
  readonly method: 'get' | 'post'
  readonly path: `/${string}`
  readonly scope: Scope
  /** Present: its form may hold a file. */
  readonly takesFile?: true
  readonly answer: (visit: Visit) => Promise<PageAnswer>
}
