import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Makes metrics of a registry. */
export function instrumentsOf(registry: Registry) {
  const registers = [registry]
  return {
    gauge: <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Gauge({ name, help, labelNames, registers }),
    counter: <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter({ name, help, labelNames, registers }),
    histogram: (name: string, help: string, buckets: number[]) => new Histogram({ name, help, buckets, registers }),
  }
}
