// As often as the project of this file has it.
import '../../faults/malformed.test.ts'
