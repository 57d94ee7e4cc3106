import { html, type Markup } from '../html.ts'
import { renderBare, type View } from '../layout.ts'
import type { KeptRequest } from './kept-request.ts'

export interface LoginSaid {
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
  return renderBare(view, { title: refusal === null ? 'Log in' : 'Not logged in · Log in', main })
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
