import type { Context } from 'koa'
import { FIELDS_MAX, type FormField, fieldsToKeep, readForm } from '../form.ts'
import { html, type Markup } from '../html.ts'
import { type PageRoute, renderBare, type View } from '../layout.ts'

/** What somebody without a session has asked for. The login page carries it, so that the login leads there. */
export interface KeptRequest {
  /** The path and the query, below the prefix of the portal. */
  readonly address: string
  /** The fields of the form that was sent, without secrets. Null: no form was sent, or it was too long to keep. */
  readonly fields: readonly FormField[] | null
  readonly isForm: boolean
}

/** The most bytes of a form that the login page carries. Anybody can send these. */
const KEPT_BYTES_MAX = 64 * 1024
const ADDRESS_LENGTH_MAX = 4096
/** The most bytes that these fields may have in the login form. The rest of what a form may have is left to the address, name and password. */
const CARRIED_BYTES_MAX = 192 * 1024

export async function keptOf(ctx: Context, route: PageRoute): Promise<KeptRequest> {
  const query = ctx.querystring === '' ? '' : `?${ctx.querystring}`
  const address = `${ctx.path}${query}`
  const isForm = route.method === 'post'
  if (address.length > ADDRESS_LENGTH_MAX) return { address: '/', fields: null, isForm: false }
  return { address, fields: isForm ? await fieldsOf(ctx, route) : null, isForm }
}

async function fieldsOf(ctx: Context, route: PageRoute): Promise<readonly FormField[] | null> {
  const length = ctx.get('Content-Length')
  if (!/^\d{1,5}$/.test(length) || Number(length) > KEPT_BYTES_MAX) {
    ctx.set('Connection', 'close')
    return null
  }
  try {
    return keepable((await readForm(ctx, route)).entries())
  } catch {
    // The login page says that the form could not be kept.
    return null
  }
}

/** Returns null if the login form that carries the fields would be too long to be read, or they are more than a form may have. */
function keepable(fields: readonly FormField[]): readonly FormField[] | null {
  const kept = fieldsToKeep(fields)
  return kept.length > FIELDS_MAX || encodeURIComponent(JSON.stringify(kept)).length > CARRIED_BYTES_MAX ? null : kept
}

/** Reads what the login page carried. The text was received, so it may be anything. */
export function readKept(address: string, fields: string): KeptRequest | null {
  if (address.length > ADDRESS_LENGTH_MAX || !URL.canParse(address, 'http://relay')) return null
  const read = fields === '' ? null : readFields(fields)
  return { address, fields: read, isForm: read !== null }
}

function readFields(text: string): readonly FormField[] | null {
  try {
    const read: unknown = JSON.parse(text)
    if (!Array.isArray(read)) return null
    const pairs: readonly unknown[] = read
    return keepable(
      pairs.flatMap((pair) => {
        const parts: readonly unknown[] = Array.isArray(pair) ? pair : []
        const [name, values] = parts
        if (typeof name !== 'string' || !Array.isArray(values)) return []
        return [[name, values.filter((value) => typeof value === 'string')] as const]
      }),
    )
  } catch {
    return null
  }
}

interface LoginSaid {
  readonly username?: string
  /** Why the last login failed. Null: nobody has tried. */
  readonly refusal?: string | null
  /** What was asked for without a session. Null: the login page itself. */
  readonly asked?: KeptRequest | null
}

/** Makes the login page, which also answers at the address of every other page as long as nobody is logged in. */
export function loginPage(view: View, { username = '', refusal = null, asked = null }: LoginSaid = {}): string {
  const main = html`<h1>Log in</h1>
${refusal === null ? null : html`<div class="note bad" role="alert"><strong>${refusal}</strong></div>`}
${asked === null ? null : askedNote(asked)}
<form method="post" action="${view.to`/login`.path}">${asked === null ? null : html`<input type="hidden" name="asked" value="${asked.address}">`}${asked?.fields ? html`<input type="hidden" name="kept" value="${JSON.stringify(asked.fields)}">` : null}
<div class="field"><label for="username">User name</label><input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required></div>
<div class="field"><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required></div>
<p><button class="btn main" type="submit">Log in</button></p>
</form>
${otherAddressNote(view)}<p class="dim">Use the name and password of an app in the relay’s config. With the scope <code>admin</code> you can change things; with <code>status</code> you see parcels.</p>`
  return renderBare(view, refusal === null ? 'Log in' : 'Not logged in · Log in', main)
}

function askedNote({ isForm, fields }: KeptRequest): Markup | null {
  if (!isForm) return null
  const kept =
    fields === null
      ? 'What you sent was too long to keep, or could not be read.'
      : 'After the login, the form comes back as you filled it, without keys and files. It is not sent by itself.'
  return html`<div class="note warn" role="alert"><strong>Your session has ended, so nothing was done.</strong> ${kept}</div>`
}

/** Browsers keep the session only at the address that is configured, and a session for https never over plain http. */
function otherAddressNote({ publicOrigin, host }: View): Markup | null {
  if (publicOrigin === null || new URL(publicOrigin).host === host) return null
  const isSecure = publicOrigin.startsWith('https:')
  return html`<p class="note warn">The portal’s address is <strong>${publicOrigin}</strong> (<code>portal.publicUrl</code>). Opened elsewhere${isSecure ? ', or over plain http' : ''}, it may not keep you logged in.</p>`
}
