import type { Happening } from './happenings.ts'
import type { Picture } from './picture.ts'

/** Where the demo is watched. */
export interface View {
  /** Text that stays. */
  note(text: string): void
  show(picture: Picture, happenings: readonly Happening[]): void
}

/** A stream that text is written to; a terminal has a size. */
export interface Output {
  write(text: string): unknown
  readonly columns?: number
  readonly rows?: number
}
