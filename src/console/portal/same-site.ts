import type { Context } from 'koa'
import { AppError } from '../../core/domain/errors.ts'
import { headerValues } from '../../core/http/server/header-values.ts'

/**
 * Refuses a form that another site has sent with a person's cookie. Browsers say in `Sec-Fetch-Site` where a form comes from. They leave this
 * header out over plain http, except on loopback. Then `Origin` must be the origin of `portal.publicUrl`. If that is not configured, `Origin`
 * must name the requested host. Throws `forbidden`, also if both headers are missing.
 */
export function refuseOtherSites(ctx: Context, publicOrigin: string | null): void {
  const site = onlyValue(ctx, 'sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw refused()
  }
  const origin = onlyValue(ctx, 'origin')
  if (origin === null || !isOurs(origin, publicOrigin, ctx.get('Host'))) throw refused(elsewhere(origin, publicOrigin))
}

function isOurs(origin: string, publicOrigin: string | null, host: string): boolean {
  if (publicOrigin !== null) return origin === publicOrigin
  return origin === `http://${host}` || origin === `https://${host}`
}

/** Returns the value of a header. Null: it was not sent. Throws `forbidden` if it was sent more than once. */
function onlyValue(ctx: Context, name: string): string | null {
  const [value, ...more] = headerValues(ctx.req, name)
  if (more.length > 0) throw refused()
  return value ?? null
}

function refused(why = 'the Origin header names another page, or none. Open the page in the portal, and try again.'): AppError {
  return new AppError('forbidden', `This form was not sent from the portal: ${why}`)
}

/** Says so if the portal was opened at an address other than `portal.publicUrl`, where no session can be kept. */
function elsewhere(origin: string | null, publicOrigin: string | null): string | undefined {
  if (publicOrigin === null || origin === null || !/^https?:\/\//.test(origin)) return undefined
  const over = origin.startsWith('http:') && publicOrigin.startsWith('https:') ? ', over plain http' : ''
  return `it was opened at ${origin}${over}, but portal.publicUrl is ${publicOrigin}. Open the portal there, or correct that setting.`
}
