/** What a part is for: `serving` parts answer requests, all others work. */
type Part = 'working' | 'serving'

/** What was opened, to be closed in reverse order. */
export interface Closing {
  add(close: () => unknown, part?: Part): void
  /** Closes what works, the last added first. What serves goes on. */
  closeWorking(): Promise<void>
  /** Closes the rest, one after the other, the last added first. */
  closeAll(): Promise<void>
}

export function createClosing(): Closing {
  let steps: { readonly close: () => unknown; readonly part: Part }[] = []
  async function closeThose(isClosed: (part: Part) => boolean): Promise<void> {
    const closed = steps.filter(({ part }) => isClosed(part))
    steps = steps.filter(({ part }) => !isClosed(part))
    for (const { close } of closed.reverse()) await close()
  }
  return {
    add(close, part = 'working') {
      steps.push({ close, part })
    },
    closeWorking: () => closeThose((part) => part === 'working'),
    closeAll: () => closeThose(() => true),
  }
}
