// As often as the project of this file has it.
import '../../faults/postgres-load.test.ts'
