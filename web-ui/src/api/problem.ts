// What went wrong, as the node tells it (RFC 9457), as an error that can be thrown and shown.
import type { components } from "./schema";

export type Problem = components["schemas"]["Problem"];

export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ProblemError";
    this.problem = problem;
  }
}

function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "detail" in value;
}

/** What an answer of 400 and up says; an answer that some proxy has made instead is told as what it is. */
export function problemOf(status: number, body: unknown): ProblemError {
  if (isProblem(body)) return new ProblemError(body);
  return new ProblemError({
    type: "about:blank",
    title: `HTTP ${status}`,
    status,
    detail: `the answer has status ${status} and is no problem document; something between here and the node made it`,
    code: "no_problem_document",
    request_id: "",
  } as Problem);
}

export async function problemOfResponse(response: Response): Promise<ProblemError> {
  const text = await response.text();
  try {
    return problemOf(response.status, JSON.parse(text) as unknown);
  } catch {
    return problemOf(response.status, null);
  }
}

/** One sentence for anything that was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof ProblemError) return error.message;
  if (error instanceof TypeError) return `the node cannot be reached (${error.message})`;
  return error instanceof Error ? error.message : String(error);
}
