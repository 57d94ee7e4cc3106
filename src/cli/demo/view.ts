import type { Happening } from './happenings.ts'
import type { Picture } from './picture.ts'

/** What the demo is shown on. */
export interface View {
  /** Prints text that stays. */
  note(text: string): void
  show(picture: Picture, happenings: readonly Happening[]): void
  /** Prints the last line, below everything. */
  end(text: string): void
}
