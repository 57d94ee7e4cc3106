import { countText } from '../../../core/domain/amounts.ts'

/** The output that shows progress. */
export interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export interface ProgressLine {
  /** Shows the name of a step, and how many units (`done`) of how many (`total`) are done. */
  show(step: string, done: number, total: number, unit: string): void
  /** Ends the line after the last step. */
  end(): void
}

const CELLS = 24

/** Creates the progress line. A terminal shows a bar that is redrawn, or only a count if the total is unknown. Other output gets a line per step. */
export function createProgressLine(screen: Screen): ProgressLine {
  let shown = ''
  let width = 0
  return {
    show(step, done, total, unit) {
      if (screen.isTTY === true) {
        const amount =
          total > 0
            ? ` ${bar(done / total)} ${countText(done)} of ${countText(total)} ${unit}`
            : done > 0
              ? ` ${countText(done)} ${unit}`
              : ''
        const line = `${step}${amount}`
        screen.write(`\r${line.padEnd(width)}`)
        width = line.length
      } else if (step !== shown) screen.write(`${step}${total > 0 ? `: ${countText(total)} ${unit}` : ''}\n`)
      shown = step
    },
    end() {
      if (screen.isTTY === true && shown !== '') screen.write('\n')
    },
  }
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, share) * CELLS)
  return `[${'='.repeat(full)}${' '.repeat(CELLS - full)}] ${String(Math.floor(Math.min(1, share) * 100)).padStart(3)} %`
}
