import type { Happening } from './happenings.ts'
import type { Picture } from './picture.ts'

/** Shows the demo's progress, on a terminal or in a file. */
export interface View {
  /** Prints text that the picture does not overwrite. */
  note(text: string): void
  /** Replaces the lines that are always shown below the picture. A note, in contrast, scrolls away. */
  pin(lines: readonly string[]): void
  show(picture: Picture, happenings: readonly Happening[]): void
  end(text: string): void
}
