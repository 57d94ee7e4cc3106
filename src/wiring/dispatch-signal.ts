/** Lets parts that are made before the dispatcher wake it. */
export interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Call after a join of parcels, which may change the order of their deliveries. */
  review(): void
  /** Connects the dispatcher. Earlier signals are not lost, because it looks at everything when it starts. */
  follow(dispatcher: Pick<DispatchSignal, 'wake' | 'review'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let followed: Pick<DispatchSignal, 'wake' | 'review'> | undefined
  return {
    wake: () => followed?.wake(),
    review: () => followed?.review(),
    follow(dispatcher) {
      followed = dispatcher
    },
  }
}
