// As often as the project of this file has it.
import '../../faults/catch-up.test.ts'
