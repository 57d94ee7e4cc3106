import { onTestFinished } from 'vitest'
import { ADMIN } from '../relay/relay.ts'
import { createVisitor } from './portal-visitor.ts'

/** The person who opens a page: a login, or headers that already identify somebody. */
type Reader = typeof ADMIN | { readonly headers: Readonly<Record<string, string>> }

/** Opens the stream of a page and collects its events. It is closed after the test. */
export async function follow(url: string, page: string, reader: Reader = ADMIN) {
  const headers = 'headers' in reader ? reader.headers : { cookie: await cookieOf(url, reader) }
  const leaving = new AbortController()
  const answer = await fetch(`${url}/live?page=${encodeURIComponent(page)}`, { headers, signal: leaving.signal })
  const said = { text: '' }
  const read = async () => {
    for await (const chunk of answer.body ?? []) said.text += Buffer.from(chunk).toString()
  }
  const ended = read().catch(() => undefined)
  onTestFinished(() => leaving.abort())
  return { answer, said, ended, leave: () => leaving.abort(), changes: () => said.text.split('event: changed').length - 1 }
}

async function cookieOf(url: string, login: typeof ADMIN): Promise<string> {
  const visitor = createVisitor(url)
  await visitor.logIn(login)
  return cookiesIn(visitor.jar)
}

/** Returns the `Cookie` header that a browser would send. */
export function cookiesIn(jar: ReadonlyMap<string, string>): string {
  return [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
}
