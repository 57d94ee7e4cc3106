import { readFileSync } from 'node:fs'

/** A fenced block of a page, and the heading above it. */
export interface FencedBlock {
  readonly heading: string
  readonly language: string
  readonly text: string
}

/** Reads the fenced blocks of a Markdown page, in order. Headings within a block are text of the block. */
export function fencedBlocks(path: string): readonly FencedBlock[] {
  const parts = readFileSync(path, 'utf8').matchAll(/^```(\w*)\n(.*?)^```$|^#+ ([^\n]*)$/gms)
  let heading = ''
  const blocks: FencedBlock[] = []
  for (const [, language, text, title] of parts) {
    if (title !== undefined) heading = title
    else blocks.push({ heading, language: language ?? '', text: text ?? '' })
  }
  return blocks
}

/** Returns the only block of this language under a heading. */
export function blockUnder(path: string, heading: string, language: string): string {
  const [block, ...more] = fencedBlocks(path).filter((one) => one.heading === heading && one.language === language)
  if (block === undefined || more.length > 0) throw new Error(`${path} must have exactly one block of ${language} under ${heading}`)
  return block.text
}
