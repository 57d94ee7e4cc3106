import { expect } from 'vitest'

/** Returns the hidden fields of the form that a page sends to `path`, with their values. */
export function formIn(page: string, path: string): Readonly<Record<string, string>> {
  const form = new RegExp(`<form[^>]* method="post" action="${path}"[^>]*>(.*?)</form>`, 's').exec(page)?.[1]
  if (form === undefined) return expect.fail(`the page has no form to ${path}`)
  return Object.fromEntries(
    [...form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    ]),
  )
}

/** Returns the shared key that a page shows; null: it shows none. */
export function keyIn(page: string): string | null {
  return /<code id="key">(.*?)<\/code>/.exec(page)?.[1]?.replaceAll('<wbr>', '') ?? null
}

/** Removes the ids of forms, which are new on every page. */
export function withoutIds(page: string): string {
  return page.replaceAll(/ name="form" value="[^"]*"/g, '')
}
