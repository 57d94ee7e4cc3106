import { onTestFinished } from 'vitest'
import { fetchDocumented } from '../portal/api-document.ts'
import { ADMIN, logIn } from './relay.ts'

export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Record<string, unknown>
}

/** Returns a function that calls the relay's API as an operator, with a body as JSON. It checks answers against the document of the API. */
export async function operatorOf(relay: { readonly internalUrl: string }) {
  const token = await logIn(relay.internalUrl, ADMIN)
  return async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetchDocumented(`${relay.internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      text,
      headers: Object.fromEntries(response.headers),
      body: text === '' ? {} : asObject(JSON.parse(text)),
    }
  }
}

/** Adds a managed endpoint that is removed after the test. Returns its id. */
export async function endpointOfTest(relay: { readonly internalUrl: string }, settings: object): Promise<string> {
  const operate = await operatorOf(relay)
  const id = String((await operate('POST', '/relay/endpoints', settings)).body.id)
  onTestFinished(async () => void (await operate('DELETE', `/relay/endpoints/${id}`)))
  return id
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
