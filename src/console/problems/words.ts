import { spanText } from '../../core/domain/amounts.ts'
import { failureText } from '../../core/domain/polling/carrier-answer.ts'

/**
 * A part of a sentence: plain text, or a value that pages show in a special form. `code`: what is typed as it is. `said`: what others have written. `time`: an ISO instant. `ago`: an ISO instant, and how long
 * ago it was. `carrier`: the code of the reason why a call to the carrier failed; `status`: of the reply.
 */
export type Word =
  | string
  | { readonly kind: 'name' | 'time' | 'code' | 'said'; readonly text: string }
  | { readonly kind: 'carrier'; readonly text: string; readonly status: string | undefined }
  | { readonly kind: 'ago'; readonly text: string; readonly ago: string }

/** A sentence as plain text, in which pages find instants and commands by their form, or as words. */
export type Sentence = string | readonly Word[]

export function codeWord(text: string): Word {
  return { kind: 'code', text }
}

export function timeWord(atMs: number): Word {
  return { kind: 'time', text: new Date(atMs).toISOString() }
}

/** Makes an instant a part of a sentence, together with how long ago it was. */
export function agoWord(atMs: number, nowMs: number): Word {
  return { kind: 'ago', text: new Date(atMs).toISOString(), ago: `${spanText(Math.max(0, nowMs - atMs))} ago` }
}

/** Writes a sentence as plain text, for a terminal or a message. */
export function plainText(sentence: Sentence): string {
  return typeof sentence === 'string' ? sentence : sentence.map(plain).join('')
}

function plain(word: Word): string {
  if (typeof word === 'string') return word
  if (word.kind === 'ago') return word.ago
  if (word.kind === 'said') return `"${word.text}"`
  return word.kind === 'carrier' ? failureText(word.text, word.status) : word.text
}
