import type Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../../../core/domain/errors.ts'
import type { Log } from '../../../core/flow/ports.ts'
import type { CountFailure, VisitorOf } from '../../../core/http/server/authorize.ts'
import { proveConnection } from '../../../core/http/server/connection-slots.ts'
import { readForm, refuseOtherSites } from '../form.ts'
import { html, withQuery } from '../html.ts'
import type { PageAnswer, View } from '../layout.ts'
import { type PageTable, present, problemPage, type ServePage } from '../serve-page.ts'
import type { Person, Sessions } from '../session.ts'
import { type KeptRequest, loginPage, readKept } from './login-form.ts'

export interface LoginOptions {
  readonly settings: () => { readonly publicOrigin: string | null; readonly prefix: string }
  readonly sessions: Pick<Sessions, 'logIn' | 'logOut'>
  readonly servePage: Pick<ServePage, 'showFilled'>
  readonly pages: PageTable
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
  readonly log: Log
}

const PASSWORD_LENGTH_MAX = 1024

export function addLogin(router: Router, options: LoginOptions, viewOf: (ctx: Context) => View): void {
  const { settings, sessions, servePage, pages, log } = options
  router.get('/login', (ctx) => present(ctx, { page: loginPage(viewOf(ctx)) }))
  router.post('/login', async (ctx) => {
    const view = viewOf(ctx)
    try {
      refuseOtherSites(ctx, settings().publicOrigin)
      present(ctx, await logIn(ctx, view))
    } catch (error) {
      present(ctx, problemPage(error, { view, person: null, ctx, log }))
    }
  })
  router.get('/logout', (ctx) => present(ctx, { goTo: viewOf(ctx).to`/` }))
  router.post('/logout', async (ctx) => {
    const view = viewOf(ctx)
    try {
      refuseOtherSites(ctx, settings().publicOrigin)
      await sessions.logOut(ctx)
      present(ctx, { goTo: view.to`/login` })
    } catch (error) {
      present(ctx, problemPage(error, { view, person: null, ctx, log }))
    }
  })

  async function logIn(ctx: Context, view: View): Promise<PageAnswer> {
    const form = await readForm(ctx)
    const [username, password] = [form.get('username'), form.get('password')]
    const asked = readKept(form.get('asked'), form.get('kept'))
    let person: Person
    try {
      if (password.length > PASSWORD_LENGTH_MAX) throw new AppError('unauthorized', 'The username or the password is wrong.')
      person = await sessions.logIn(ctx, { username, password }, options.visitorOf(ctx.req, username))
      proveConnection(ctx.req)
    } catch (error) {
      if (!(error instanceof AppError) || (error.code !== 'unauthorized' && error.code !== 'too_many_requests')) throw error
      const failure = error.code === 'unauthorized' ? await options.countFailure(ctx.req, error) : error
      const isWrong = failure.code === 'unauthorized'
      const refusal = isWrong
        ? 'The user name or the password is wrong.'
        : 'Too many wrong passwords from this address. Wait a minute, then try again.'
      return { page: loginPage(view, { username, refusal, asked }), status: isWrong ? 401 : 429 }
    }
    return await answerTo(ctx, view, person, asked)
  }

  /** Answers what was asked for before the login. A form is shown filled, and is not carried out. */
  async function answerTo(ctx: Context, view: View, person: Person, asked: KeptRequest | null): Promise<PageAnswer> {
    const { pathname: path, searchParams } = new URL(asked?.address ?? '/', 'http://relay')
    if (asked?.fields !== null && asked?.fields !== undefined && pages.find('post', path) !== null)
      return await servePage.showFilled(ctx, person, { path, fields: asked.fields, note: LOGGED_IN_AGAIN, errors: {} })
    const page = pages.find('get', path) ?? pages.pageOfForm(path)
    if (page === null) return { goTo: view.to`/` }
    return { goTo: withQuery({ path: settings().prefix + page.path }, Object.fromEntries(searchParams)) }
  }
}

const LOGGED_IN_AGAIN = html`<div class="note warn" role="alert"><strong>You are logged in again. Nothing was done yet.</strong> Your session had ended before this form was sent. Check it, enter keys and choose files again, then send it.</div>`
