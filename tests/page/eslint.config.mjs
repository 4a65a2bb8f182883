// Lints the page's scripts as one script; run it at the top of the project:
//
//     eslint --config tests/page/eslint.config.mjs inspect/page/browser/scripts.txt
//
// Needs npm's eslint 9 or newer: Debian 12's 6.4 neither reads this configuration format nor knows the syntax.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

let lines = []; // of the whole: {file, line}

/** Replaces the list by the listed scripts, and adds their file and line to each message. */
const scripts = {
  preprocess(list, path) {
    lines = [];
    const texts = list
      .trim()
      .split(/\s+/)
      .map((file) => {
        const text = readFileSync(join(dirname(path), file), "utf8");
        text.split("\n").forEach((_, i) => lines.push({ file, line: i + 1 }));
        return text;
      });
    return [{ text: texts.join("\n"), filename: "page.js" }];
  },
  postprocess: ([messages]) =>
    messages.map(({ fix, suggestions, ...message }) => {
      const { file, line } = lines[message.line - 1] ?? { file: "?", line: 0 };
      return { ...message, message: `${file}:${line}: ${message.message}` };
    }),
};

const BROWSER = [
  ...["window", "document", "navigator", "performance", "Node", "Path2D"],
  ...["setInterval", "clearInterval", "atob"],
];

export default [
  { files: ["**/scripts.txt"], plugins: { page: { processors: { scripts } } }, processor: "page/scripts" },
  {
    files: ["**/*.js"],
    languageOptions: {
      ecmaVersion: 2024,
      sourceType: "script",
      globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])),
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "error",
      "default-case-last": "error",
      eqeqeq: "error",
      "max-lines-per-function": ["error", { max: 60, skipComments: true }],
      "no-cond-assign": "error",
      "no-const-assign": "error",
      "no-constant-condition": "error",
      "no-dupe-args": "error",
      "no-dupe-else-if": "error",
      "no-dupe-keys": "error",
      "no-duplicate-case": "error",
      "no-else-return": ["error", { allowElseIf: true }],
      "no-empty": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-func-assign": "error",
      "no-implied-eval": "error",
      "no-loop-func": "error",
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-redeclare": "error",
      "no-self-assign": "error",
      "no-shadow": "error",
      "no-sparse-arrays": "error",
      "no-undef": "error",
      "no-unreachable": "error",
      "no-unused-expressions": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "use-isnan": "error",
      "valid-typeof": "error",
    },
  },
];
