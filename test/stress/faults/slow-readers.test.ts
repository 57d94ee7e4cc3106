// As often as the project of this file has it.
import '../../faults/slow-readers.test.ts'
