// As often as the project of this file has it.
import '../../faults/moving-kills.test.ts'
