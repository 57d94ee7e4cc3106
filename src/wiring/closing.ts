/** What was opened, to be closed in reverse order. */
export interface Closing {
  add(close: () => unknown): void
  /** Closes one after the other, the last added first. */
  closeAll(): Promise<void>
}

export function createClosing(): Closing {
  const steps: (() => unknown)[] = []
  return {
    add(close) {
      steps.push(close)
    },
    async closeAll() {
      for (const close of steps.splice(0).reverse()) await close()
    },
  }
}
