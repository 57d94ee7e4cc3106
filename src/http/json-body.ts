import { koaBody } from 'koa-body'
import { AppError } from '../domain/errors.ts'

/** Reads a JSON body of at most this many bytes. */
export function readJson(bytesMax: number) {
  return koaBody({
    urlencoded: false,
    text: false,
    jsonLimit: bytesMax,
    patchNode: false,
    onError: (error, ctx) => {
      ctx.set('Connection', 'close')
      if ('status' in error && error.status === 413) throw new AppError('body_too_large', `A body may have at most ${bytesMax} bytes.`)
      throw new AppError('bad_request', 'The body is not the JSON it should be.')
    },
  })
}
