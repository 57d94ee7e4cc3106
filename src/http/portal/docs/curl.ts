import type { RouteRow } from '../../server/route.ts'

/** Returns the shell lines that set the variables of the examples. `publicUrl`: `portal.publicUrl`; null: not configured. */
export function prelude(publicUrl: string | null): string {
  return `RELAY=${publicUrl === null ? 'http://127.0.0.1:8081' : quoted(publicUrl.replace(/\/+$/, ''))}   # the internal listener
PUBLIC=http://127.0.0.1:8080   # the public listener
USERNAME=shop PASSWORD='shop-demo-password'   # of an app
SHARED_KEY='the key of the carrier, from webhook.sharedKeys'
TOKEN=$(curl -sS "$RELAY/auth/token" -H 'Content-Type: application/json' \\
  --data "{\\"username\\":\\"$USERNAME\\",\\"password\\":\\"$PASSWORD\\"}" | sed 's/.*"token" *: *"\\([^"]*\\)".*/\\1/')`
}

/** Returns a shell command that calls a route with the example from its row in the table of routes. */
export function curlOf(row: RouteRow): string {
  const { method, body, scope, listener, example } = row
  const values = new Map<string, string>(Object.entries(example.path))
  const path = row.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values.get(name) ?? ''))
  const address = `"$${listener === 'public' ? 'PUBLIC' : 'RELAY'}${path}${example.query === undefined ? '' : `?${example.query}`}"`
  const [content] = Object.entries(body?.content ?? {})
  const isSigned = row.path.startsWith('/webhooks') && content !== undefined
  const options = [
    `curl -sS${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${address}`,
    ...(scope === null ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...(content === undefined ? [] : [`-H 'Content-Type: ${content[0]}'`]),
    ...(isSigned ? ['-H "x-service-hmac-sha256: $(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SHARED_KEY" -binary | base64)"'] : []),
    ...(content === undefined ? [] : [isSigned ? '--data-binary "$BODY"' : `--data-binary ${quoted(textOf(content[1].example))}`]),
  ]
  const line = options.join(' \\\n  ')
  return isSigned ? `BODY=${quoted(textOf(content[1].example))}\n${line}` : line
}

function textOf(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
