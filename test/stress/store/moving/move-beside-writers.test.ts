// As often as the project of this file has it.
import '../../../store/moving/move-beside-writers.test.ts'
