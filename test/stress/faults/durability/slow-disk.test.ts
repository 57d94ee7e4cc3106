// As often as the project of this file has it.
import '../../../faults/durability/slow-disk.test.ts'
