import type { Happening } from './happenings.ts'
import type { Picture } from './picture.ts'

/** Where the demo is watched. */
export interface View {
  /** Text that stays. */
  note(text: string): void
  show(picture: Picture, happenings: readonly Happening[]): void
  /** The last word, below everything. */
  end(text: string): void
}
