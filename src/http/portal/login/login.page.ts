import { html } from '../html.ts'
import { renderBare, type View } from '../layout.ts'

/** Makes the login page. `refusal`: why the last login failed; null: nobody has tried. */
export function loginPage(
  view: View,
  { username = '', refusal = null }: { readonly username?: string; readonly refusal?: string | null } = {},
): string {
  const main = html`<h1>Log in</h1>
${refusal === null ? null : html`<div class="note bad" role="alert"><strong>${refusal}</strong></div>`}
<form method="post" action="${view.to`/login`.path}">
<div class="field"><label for="username">User name</label><input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required></div>
<div class="field"><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required></div>
<p><button class="btn main" type="submit">Log in</button></p>
</form>
<p class="dim">Use the name and password of an app in the relay’s config. With the scope <code>admin</code> you can change things; with <code>status</code> you see parcels.</p>`
  return renderBare(view, { title: refusal === null ? 'Log in' : 'Not logged in · Log in', main })
}
