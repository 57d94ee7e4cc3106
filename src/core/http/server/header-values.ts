import type { IncomingMessage } from 'node:http'

/** Returns every value of a header, in order. `req.headers` hides repeated headers: Node joins them, or drops all but the first. */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): readonly string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}
