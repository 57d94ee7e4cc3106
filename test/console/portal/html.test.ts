import fc from 'fast-check'
import { expect, test } from 'vitest'
import { charactersOf, html, markup, type Part } from '../../../src/console/portal/html.ts'

/** Makes the first argument of a call of the tag `html`: the texts of a template around its values. */
function template(...texts: readonly string[]): TemplateStringsArray {
  return Object.assign([...texts], { raw: texts })
}

const NAUGHTY = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</textarea><b>',
  '<!--',
  '-->',
  '&amp;',
  '\u2028',
  '{{x}}',
]

/** Unescapes text as a browser does. */
function read(escaped: string): string {
  const marks: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
  return escaped.replace(/&(?:lt|gt|quot|#39|amp);/g, (mark) => marks[mark] ?? mark)
}

/** Reads the marks that stand for hidden characters. */
function unmarked(text: string): string {
  return text.replace(/⟨U\+([0-9A-F]{4,6})⟩/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
}

test('W1: any text is read back as the same text, between tags and in an attribute', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...NAUGHTY)), (text) => {
      const page = charactersOf(html`<p title="${text}">${text}</p>`).replace(/<span class="long">([^<>"']*)<\/span>/g, '$1')
      const [, value = '', content = ''] = /^<p title="([^"]*)">([^<>"']*)<\/p>$/.exec(page) ?? []
      expect([read(value), unmarked(read(content))]).toEqual([text, text])
    }),
    // Marks make a long word of a short one.
    { examples: [['\0'.repeat(6)]] },
  )
})

test('characters that hide or turn text are shown as marks between tags, and stay in fields', () => {
  const text = 'a\u202eb\u200bc\u0007d\ufeff\r\n\te'
  expect(charactersOf(html`<i title="${text}">${text}</i>`)).toBe(`<i title="${text}">a⟨U+202E⟩b⟨U+200B⟩c⟨U+0007⟩d⟨U+FEFF⟩\r\n\te</i>`)
})

test('markup and lists are inserted; null, undefined and false give nothing', () => {
  const items = ['a & b', html`<b>${'<'}</b>`]
  expect(charactersOf(html`<p>${items}${null}${undefined}${false}${0}</p>`)).toBe('<p>a &amp; b<b>&lt;</b>0</p>')
})

test('an object that looks like markup is not accepted as markup', () => {
  const forged: Part = Object(JSON.parse('{"markup":"<script>","Symbol(markup)":"<script>"}'))
  expect(() => html`<p>${forged}</p>`).toThrow(TypeError)
})

test.each([
  ['a tag’s name', template('<', '>')],
  ['the end of a tag’s name', template('</p', '>')],
  ['an attribute’s name', template('<p on', '="x">')],
  ['an attribute without quotes', template('<p title=', '>')],
  ['an attribute in single quotes', template("<p title='", "'>")],
  ['a comment', template('<!-- ', ' -->')],
  ['a script', template('<script>', '</script>')],
  ['a style', template('<style>p { color: ', ' }</style>')],
])('a template that would put text into %s is refused', (_place, texts) => {
  expect(() => html(texts, 'x')).toThrow(TypeError)
})

test('between attributes only markup is accepted, and in the value of an attribute only text', () => {
  expect(() => html`<p${' onclick="x"'}>`).toThrow(TypeError)
  expect(() => html`<p title="${markup('<b>')}">`).toThrow(TypeError)
  expect(charactersOf(html`<option${markup(' selected')}>${'a'}</option><script src="${'/a.js'}"></script><i>${'b'}</i>`)).toBe(
    '<option selected>a</option><script src="/a.js"></script><i>b</i>',
  )
})
