/** Replaces lone surrogates and NUL by U+FFFD. The raw bytes still have what was sent (DOMAIN 5.3). */
export function derivedText(text: string): string {
  return text.isWellFormed() && !text.includes('\u0000') ? text : text.toWellFormed().replaceAll('\u0000', '\ufffd')
}

/** Compares strings by their UTF-8 bytes: negative, 0 or positive. The order of UTF-16 differs between surrogates and U+E000..U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return byteRank(left) - byteRank(right)
  }
  return a.length - b.length
}

/** Surrogates rank above every other unit, because they belong to the highest code points. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** The bytewise greatest text. It is '' only if all are empty; undefined: there are none (DOMAIN 2.5). */
export function greatestText(texts: readonly string[]): string | undefined {
  return texts.reduce<string | undefined>((best, text) => (best === undefined || compareBytes(text, best) > 0 ? text : best), undefined)
}
