/** Lets parts that are made before the dispatcher wake it. */
export interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Connects the dispatcher. Earlier signals are not lost, because it looks at everything when it starts. */
  follow(dispatcher: Pick<DispatchSignal, 'wake'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let followed: Pick<DispatchSignal, 'wake'> | undefined
  return {
    wake: () => followed?.wake(),
    follow(dispatcher) {
      followed = dispatcher
    },
  }
}
