import { spawnSync } from 'node:child_process'
import { parentPort, workerData } from 'node:worker_threads'

// Waits for the end of its process inside a system call, because a thread cannot be ended there. Creates a file to show that it waits.
parentPort?.postMessage([])
spawnSync('sh', ['-c', 'touch "$0"; while kill -0 $PPID 2>/dev/null; do sleep 0.1; done', String(workerData)])
