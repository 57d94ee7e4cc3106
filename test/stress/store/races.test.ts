// `npm test` repeats these races a few times, and this project hundreds of times.
import '../../store/contract/history.test.ts'
import '../../store/contract/polling.test.ts'
import '../../store/postgres/two-replicas.test.ts'
