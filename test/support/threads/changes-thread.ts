import { workerData } from 'node:worker_threads'
import { type ChangeTable, tellChanged } from '../../../src/core/runtime/answer-cache.ts'

const changes: ChangeTable = workerData
for (let time = 0; time < 200_000; time++) tellChanged(changes, [7])
