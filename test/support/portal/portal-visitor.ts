import { expect } from 'vitest'
import { ADMIN } from '../relay/relay.ts'

export interface Seen {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

/** Creates a visitor whose browser runs no scripts. It keeps cookies and sends forms as browsers do. */
export function createVisitor(url: string, extra: Readonly<Record<string, string>> = {}) {
  const jar = new Map<string, string>()

  async function send(path: string, init: RequestInit): Promise<Seen> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...extra, ...(cookie === '' ? {} : { cookie }), ...Object.fromEntries(new Headers(init.headers)) }
    const response = await fetch(`${url}${path}`, { redirect: 'manual', ...init, headers })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  const visitor = {
    jar,
    get: (path: string, headers: Readonly<Record<string, string>> = {}) => send(path, { headers }),
    post: (
      path: string,
      fields: Readonly<Record<string, string>> | FormData = {},
      headers: Readonly<Record<string, string>> = { 'sec-fetch-site': 'same-origin' },
    ) => send(path, { method: 'POST', body: fields instanceof FormData ? fields : new URLSearchParams(fields), headers }),
    logIn: (login: { readonly username: string; readonly password: string } = ADMIN) => visitor.post('/login', { ...login }),
  }
  return visitor
}

/** Returns a visitor who has logged in, by default as the operator. */
export async function loggedInAt(url: string, login = ADMIN) {
  const visitor = createVisitor(url)
  expect((await visitor.logIn(login)).status).toBe(303)
  return visitor
}
