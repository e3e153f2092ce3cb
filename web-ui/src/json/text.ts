// JSON as text: takes it apart and lays it out anew without ever making a number of a number, so that 2^63-1 and 0.10
// stay what they are. What comes in is JSON that a parser has accepted already; text that is not is an error here, too.

/** Where the value that begins at `from` ends. */
function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first !== "{" && first !== "[") return endOfLiteral(text, from);
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  throw new SyntaxError("the JSON ends inside an object or array");
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  throw new SyntaxError("the JSON ends inside a string");
}

const LITERAL = /[-+.0-9A-Za-z]+/y;

function endOfLiteral(text: string, from: number): number {
  LITERAL.lastIndex = from;
  if (!LITERAL.test(text)) throw new SyntaxError(`there is no JSON value at ${from}`);
  return LITERAL.lastIndex;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \n\r\t".includes(text.charAt(at))) at += 1;
  return at;
}

/** The text of each item between brackets, `open` being the first; `take` is told where each begins and says where it ends. */
function items(text: string, open: "{" | "[", take: (from: number) => number): void {
  let at = skipBlanks(text, 0);
  const close = open === "{" ? "}" : "]";
  if (text[at] !== open) throw new SyntaxError(`the JSON does not begin with ${open}`);
  at = skipBlanks(text, at + 1);
  if (text[at] === close) return;
  for (;;) {
    at = skipBlanks(text, take(at));
    if (text[at] === close) return;
    if (text[at] !== ",") throw new SyntaxError(`there is no comma at ${at}`);
    at = skipBlanks(text, at + 1);
  }
}

/** An object's members: the text of each value by name; of members with one name, the last. */
export function members(text: string): Map<string, string> {
  const found = new Map<string, string>();
  items(text, "{", (from) => {
    if (text[from] !== '"') throw new SyntaxError(`there is no name at ${from}`);
    const nameEnd = endOfString(text, from);
    const colon = skipBlanks(text, nameEnd);
    if (text[colon] !== ":") throw new SyntaxError(`there is no colon at ${colon}`);
    const begin = skipBlanks(text, colon + 1);
    const end = endOfValue(text, begin);
    found.set(stringOf(text.slice(from, nameEnd)) ?? "", text.slice(begin, end));
    return end;
  });
  return found;
}

/** The text of each of an array's elements. */
export function elements(text: string): string[] {
  const found: string[] = [];
  items(text, "[", (from) => {
    const end = endOfValue(text, from);
    found.push(text.slice(from, end));
    return end;
  });
  return found;
}

/** What a JSON string says; null if the text is not one. */
export function stringOf(text: string | undefined): string | null {
  if (!text?.startsWith('"')) return null;
  return JSON.parse(text) as string;
}

/** A whole number that the language can hold exactly, as offsets and times are. */
export function integerOf(text: string | undefined, what: string): number {
  const number = text !== undefined && /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw new RangeError(`${what} is ${text ?? "absent"}, which cannot be held exactly`);
  return number;
}

/** Whether the text is JSON; says what is wrong with it if not. */
export function whyNotJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The tokens of the text, strings and numbers as they stand. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+|[{}[\],:]/gs;

/** The same tokens with line breaks and blanks laid out for reading. */
export function pretty(text: string): string {
  let out = "";
  let depth = 0;
  let before = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (before !== "{" && before !== "[") out += line();
    } else if (before === "{" || before === "[" || before === ",") out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out;
}

/** The same tokens without blanks: one line. */
export function compact(text: string): string {
  return Array.from(text.matchAll(TOKEN), ([token]) => token).join("");
}

/** The names of an object's members that are numbers, and what they are about; for charts, not for showing. */
export function numbersOf(text: string | null): Map<string, number> {
  const found = new Map<string, number>();
  if (!text?.trimStart().startsWith("{")) return found;
  for (const [name, value] of members(text)) {
    if (/^-?\d/.test(value)) found.set(name, Number(value));
  }
  return found;
}
