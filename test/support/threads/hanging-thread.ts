import { spawnSync } from 'node:child_process'
import { parentPort, workerData } from 'node:worker_threads'

// Waits inside a system call, where no thread can be ended, for as long as its process lives. The file shows that it waits.
parentPort?.postMessage([])
spawnSync('sh', ['-c', 'touch "$0"; while kill -0 $PPID 2>/dev/null; do sleep 0.1; done', String(workerData)])
