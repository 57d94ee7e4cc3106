import type { Context } from 'koa'
import type { Actor, FormerOrder } from '../../core/domain/admin/operator-action.ts'
import type { Scope } from '../../core/flow/admin/tokens/authenticate.ts'
import type { Address } from './addresses.ts'
import type { Form } from './form.ts'
import type { View } from './layout.ts'
import type { Person } from './session.ts'

/** A request for a page. The person is logged in and has the scope that the route needs. */
export interface Visit extends View {
  readonly person: Person
  /** The person and their address, for the audit trail. */
  readonly by: Actor
  readonly ctx: Context
  /** Returns a variable part of the path, as raw text. */
  readonly param: (name: string) => string
  /** Returns a parameter of the query; empty if it is missing. */
  readonly query: (name: string) => string
  /** The form that was sent; empty for a GET. */
  readonly form: Form
}

/**
 * A page as HTML, by default with status 200; an address of the portal, for a redirect after an action; or a file to download.
 */
export type PageAnswer =
  | { readonly page: string; readonly status?: number }
  | { readonly goTo: Address }
  | { readonly file: Uint8Array; readonly name: string }

export interface PageRoute {
  readonly method: 'get' | 'post'
  readonly path: `/${string}`
  readonly scope: Scope
  readonly takesFile?: true
  readonly answer: (visit: Visit) => Promise<PageAnswer>
  /**
   * Answers a form whose order was carried out when it was sent before, as it was answered then. Absent: goes to the page of the thing that
   * the form is about, whose address is that of the form without its last part.
   */
  readonly again?: (visit: Visit, former: FormerOrder) => Promise<PageAnswer>
}
