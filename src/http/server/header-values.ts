import type { IncomingMessage } from 'node:http'

/** Every value of a header as received, in order. Node joins or drops repeated headers, which would hide them from a check. */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): readonly string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}
