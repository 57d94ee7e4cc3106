import type { Happening } from './happenings.ts'
import type { Picture } from './picture.ts'

/** Shows the demo's progress, on a terminal or in a file. */
export interface View {
  /** Prints text that stays. */
  note(text: string): void
  /** Replaces the lines that stay on the screen. Anything else moves off a terminal with later output. */
  pin(lines: readonly string[]): void
  show(picture: Picture, happenings: readonly Happening[]): void
  /** Prints the last line, below everything. */
  end(text: string): void
}
