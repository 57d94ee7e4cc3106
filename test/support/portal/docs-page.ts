import { once } from 'node:events'
import { createServer, get } from 'node:http'
import Koa from 'koa'
import { createShowDocs } from '../../../src/console/portal/docs/docs.ts'
import { AppError } from '../../../src/core/domain/errors.ts'
import { readDocs } from '../../../src/package-files.ts'
import { listen } from '../network/listen.ts'
import { CAPABILITIES } from '../relay/routes.ts'

const NOWHERE = { publicOrigin: null as string | null, prefix: '' }

/** Returns a page of the manual as sent to a visitor with a false `Host` header, or the code of the error. `''` is the page of the API. */
export async function askDocs(
  name: string,
  settings: { readonly publicOrigin: string | null; readonly prefix: string } = NOWHERE,
): Promise<string> {
  const show = createShowDocs({ readDocs, settings: () => settings, capabilities: CAPABILITIES, version: '1.2.3' })
  const app = new Koa()
  app.use(async (ctx) => {
    await show(ctx, name).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      ctx.body = error.code
    })
  })
  const server = createServer((asked, answered) => void app.callback()(asked, answered))
  const request = get({ host: '127.0.0.1', port: await listen(server), headers: { host: 'evil.example' } })
  const [answer] = await once(request, 'response')
  let body = ''
  for await (const chunk of answer) body += chunk
  server.close()
  return body
}
