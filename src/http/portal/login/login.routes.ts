import type Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../../../domain/errors.ts'
import type { Log } from '../../../flow/ports.ts'
import { proveConnection } from '../../server/connection-slots.ts'
import type { CountFailure, VisitorOf } from '../../server/failures.ts'
import { readForm } from '../form.ts'
import type { View } from '../layout.ts'
import type { PageAnswer } from '../page-route.ts'
import { present } from '../present-page.ts'
import { problemPage } from '../problem-pages.ts'
import { refuseOtherSites } from '../same-site.ts'
import type { Sessions } from '../session.ts'
import { loginPage } from './login.page.ts'

export interface LoginOptions {
  readonly settings: () => { readonly publicOrigin: string | null }
  readonly sessions: Pick<Sessions, 'logIn' | 'logOut'>
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
  readonly log: Log
}

const PASSWORD_LENGTH_MAX = 1024

export function addLogin(router: Router, options: LoginOptions, viewOf: (ctx: Context) => View): void {
  const { settings, sessions, log } = options
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
    try {
      if (password.length > PASSWORD_LENGTH_MAX) throw new AppError('unauthorized', 'The username or the password is wrong.')
      await sessions.logIn(ctx, { username, password }, options.visitorOf(ctx.req, username))
      proveConnection(ctx.req)
      return { goTo: view.to`/` }
    } catch (error) {
      if (!(error instanceof AppError) || (error.code !== 'unauthorized' && error.code !== 'too_many_requests')) throw error
      const failure = error.code === 'unauthorized' ? await options.countFailure(ctx.req, error) : error
      const isWrong = failure.code === 'unauthorized'
      const refusal = isWrong
        ? 'The user name or the password is wrong.'
        : 'Too many wrong passwords from this address. Wait a minute, then try again.'
      return { page: loginPage(view, { username, refusal }), status: isWrong ? 401 : 429 }
    }
  }
}
