/** `serving` parts answer requests. `working` parts do everything else. */
type Part = 'working' | 'serving'

/** Remembers how to close each part that was opened. */
export type Closing = ReturnType<typeof createClosing>

export function createClosing() {
  let steps: { readonly close: () => unknown; readonly part: Part }[] = []
  async function closeThose(isClosed: (part: Part) => boolean): Promise<void> {
    const closed = steps.filter(({ part }) => isClosed(part))
    steps = steps.filter(({ part }) => !isClosed(part))
    for (const { close } of closed.reverse()) await close()
  }
  return {
    add(close: () => unknown, part: Part = 'working') {
      steps.push({ close, part })
    },
    /** Closes the working parts, the last added first. The serving parts stay open. */
    closeWorking: () => closeThose((part) => part === 'working'),
    /** Closes all parts that are still open, one after the other, the last added first. */
    closeAll: () => closeThose(() => true),
  }
}
