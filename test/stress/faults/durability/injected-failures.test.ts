// As often as the project of this file has it.
import '../../../faults/durability/injected-failures.test.ts'
