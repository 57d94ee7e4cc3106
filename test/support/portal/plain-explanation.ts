import { explainProblem } from '../../../src/domain/admin/problems/explain-problem.ts'
import { plainText } from '../../../src/domain/words.ts'

/** Explains a problem as a terminal shows it. */
export function explainPlainly(...problem: Parameters<typeof explainProblem>) {
  const { evidence, todo, ...rest } = explainProblem(...problem)
  return { ...rest, evidence: evidence.map(plainText), todo: todo.map(plainText) }
}
